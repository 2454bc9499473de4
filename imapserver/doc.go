// Package imapserver serves the mailboxes of package mailbox over IMAP4rev1
// (RFC 3501), IMAP4rev2 (RFC 9051) once a client enables it, and the extensions in
// capability.go. It turns wire into mailbox calls and back; what a system mailbox
// means it does not know, the Store's guard does.
//
// Promises
//
//   - Every command gets exactly one tagged reply, whatever follows a literal. No
//     octet of a refused literal is ever read as a command: it is read and thrown
//     away, or the connection is closed (RFC 7888).
//   - OK to APPEND, COPY, MOVE, STORE and EXPUNGE means that the change is on disk.
//   - Sequence numbers change only where RFC 3501 section 5.5 and 7.4.1 allow: EXPUNGE
//     is never told in FETCH, STORE and SEARCH by number. A change that was made
//     before IDLE is told when IDLE begins.
//   - SORT and THREAD work on the snapshot and the stored header fields; they read no
//     octet of a message (RFC 5256; strings are compared by i;unicode-casemap, RFC 5051).
//   - MAILBOXID, EMAILID and THREADID are functions of what is stored and never change;
//     objectid.go says of what, and where a thread falls apart (RFC 8474).
//   - Octets of a message are sent as stored, in steps of 64 KiB; no whole message is
//     held in memory, on the way in or out.
//
// A message that somebody else expunged, and of which this session has not been
// told, keeps its number. FETCH and STORE by number pass over it and end with NO
// [EXPUNGEISSUED] (RFC 2180 sections 4.1.2 and 4.2.2); COPY and MOVE by number that
// name one do nothing and end the same way; SEARCH, SORT and THREAD by number leave it
// out and end with OK [EXPUNGEISSUED]; commands by UID pass over it and end with OK,
// for a UID that is gone is no error.
//
// A client that uses CONDSTORE is told mod-sequences, none above what it has been told of
// the mailbox; to a QRESYNC client expunges are VANISHED, and HIGHESTMODSEQ in a reply is
// where it stands (condstore.go, qresync.go; RFC 7162). A client that sent NOTIFY hears
// between commands what it asked for, by comparing snapshots and rows, so no queue can
// grow; of its own changes it is told too, except of names (notify.go; RFC 5465).
//
// Concurrency: one goroutine owns one connection; while it waits in IDLE, or for the next
// command of a client that sent NOTIFY, a second one reads from it. Server is safe for
// concurrent use. Sessions of a mailbox share the Store's snapshots.
//
// The states of a connection, and what is allowed in each, are the table in
// commands.go:
//
//	not authenticated --LOGIN, AUTHENTICATE--> authenticated
//	authenticated --SELECT, EXAMINE--> selected --CLOSE, UNSELECT--> authenticated
//	any --LOGOUT, time-out, Shutdown--> logout
package imapserver
