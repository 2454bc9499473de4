package imapserver

import (
	"strconv"
	"strings"
)

// always is what every connection offers. Each has transcripts in testdata.
const always = "IMAP4rev1 LITERAL+ SASL-IR ID ENABLE"

// afterLogin is what a logged-in connection offers besides.
const afterLogin = "IDLE NAMESPACE CHILDREN UIDPLUS UNSELECT MOVE ESEARCH SEARCHRES WITHIN SPECIAL-USE LIST-EXTENDED LIST-STATUS STATUS=SIZE UTF8=ACCEPT"

// capabilities is the list for the present state of the connection.
func (c *conn) capabilities() string {
	caps := []string{always}
	if c.state == notAuthenticated {
		if c.srv.opt.TLS != nil && !c.isTLS {
			caps = append(caps, "STARTTLS")
		}
		if c.mayLogin() {
			caps = append(caps, "AUTH=PLAIN", "AUTH=LOGIN")
		} else {
			caps = append(caps, "LOGINDISABLED")
		}
	}
	caps = append(caps, afterLogin, "APPENDLIMIT="+strconv.FormatInt(c.srv.opt.MaxLiteral, 10))
	return strings.Join(caps, " ")
}

// mayLogin reports whether a password may cross this connection.
func (c *conn) mayLogin() bool { return c.isTLS || loopback(c.raw.RemoteAddr()) }
