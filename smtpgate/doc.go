// Package smtpgate takes mail from people and scripts: SMTP submission (RFC 6409)
// with AUTH, STARTTLS, SIZE, 8BITMIME, SMTPUTF8, PIPELINING and CHUNKING.
//
// It authenticates, limits, makes the message fit to be stored, and hands it over:
// bytes to a stager, the submission to a handler. A 250 after the data is sent only
// when the handler has returned, so it means what the handler promises (mail on
// disk). The package decides nothing about tasks.
//
// The commands are go-smtp's. Between it and the network stands a guard that owns
// the framing: it hands over one command line at a time (at most 4096 octets),
// finds the end of DATA (CR LF . CR LF and nothing else) and of BDAT chunks by
// itself, does STARTTLS, and measures idle time by progress. So the library never
// holds an octet beyond the command it works on, and no fault in a message can turn
// the rest of that message into commands: whatever does not end in order ends the
// connection.
//
// At this door, and only here, bytes change: Received is added, Date and Message-ID
// when they are missing, and Authentication-Results and X-Pizza-* are taken away but
// for the requests X-Pizza-Model, X-Pizza-Budget and X-Pizza-At. Bare CR, bare LF
// and NUL are refused, so that what is stored has one meaning for everybody.
//
// Authority comes from the login alone: the reverse-path and every author of the
// message must be addresses of the login. SCRAM-SHA-256, PLAIN and LOGIN are for
// loopback peers or TLS. The answer to a wrong password waits, by what was tried on the
// connection and at the login; nobody is locked out. A full disk is 452 to MAIL, before
// any of the message is sent.
//
// Concurrency: a Server is safe for concurrent use; one goroutine owns a connection.
//
// Of this module the package imports mailbox (its plain types), internal/mime,
// internal/scram and the leaves internal/crockford and internal/msgid.
package smtpgate
