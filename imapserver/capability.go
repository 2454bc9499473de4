package imapserver

import (
	"slices"
	"strconv"
	"strings"
)

// always is what every connection offers. Each has transcripts in testdata.
const always = "IMAP4rev1 IMAP4rev2 LITERAL+ SASL-IR ID ENABLE"

// afterLogin is what a logged-in connection offers besides.
const afterLogin = "IDLE NAMESPACE CHILDREN UIDPLUS UNSELECT MOVE ESEARCH SEARCHRES WITHIN SPECIAL-USE LIST-EXTENDED LIST-STATUS STATUS=SIZE UTF8=ACCEPT " +
	"MULTIAPPEND BINARY CREATE-SPECIAL-USE QUOTA QUOTA=RES-STORAGE QUOTA=RES-MESSAGE " +
	"CONDSTORE QRESYNC PARTIAL NOTIFY " +
	"SORT SORT=DISPLAY ESORT THREAD=ORDEREDSUBJECT THREAD=REFERENCES PREVIEW SAVEDATE OBJECTID"

// enables are what ENABLE can switch on (RFC 5161).
var enables = map[string]func(*conn){
	"UTF8=ACCEPT": func(c *conn) { c.utf8 = true },
	"IMAP4REV2":   func(c *conn) { c.rev2 = true },
	"CONDSTORE":   func(*conn) {}, // see enable
	"QRESYNC":     func(c *conn) { c.qresync = true },
}

// Hideable are the capabilities that can be hidden from an account: all that a login is
// told of, without values (APPENDLIMIT), except IMAP4rev1 itself.
func Hideable() []string {
	all := append(strings.Fields(always+" "+afterLogin), "APPENDLIMIT")
	return slices.DeleteFunc(all, func(name string) bool { return name == "IMAP4rev1" })
}

// capabilities is the list for the present state of the connection.
func (c *conn) capabilities() string {
	caps := strings.Fields(always)
	if c.state == notAuthenticated {
		if c.srv.opt.TLS != nil && !c.isTLS {
			caps = append(caps, "STARTTLS")
		}
		if c.mayLogin() {
			caps = append(caps, "AUTH=PLAIN", "AUTH=LOGIN", "AUTH=SCRAM-SHA-256")
		} else {
			caps = append(caps, "LOGINDISABLED")
		}
	}
	caps = append(caps, strings.Fields(afterLogin)...)
	caps = append(caps, "APPENDLIMIT="+strconv.FormatInt(c.srv.opt.MaxLiteral, 10))
	return strings.Join(slices.DeleteFunc(caps, func(name string) bool { return !c.offers(name) }), " ")
}

// mayLogin reports whether a password may cross this connection.
func (c *conn) mayLogin() bool { return c.isTLS || loopback(c.raw.RemoteAddr()) }
