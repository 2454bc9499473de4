// Package boltstore is mailbox.Store on bbolt: one file an account, and files
// beside it for large bodies.
//
//	<root>/accounts.db                     logins and password verifiers; its lock is the root's
//	<root>/run/store.pid                   who holds the lock
//	<root>/accounts/<id>/mail.db           everything of an account that commits together
//	<root>/accounts/<id>/blob/xx/<sha256>  bytes over 128 KiB
//	<root>/accounts/<id>/search/           the text index (internal/textindex), derived
//
// Directories are 0700 and files 0600, also when they were not before.
//
// Durability: Commit answers after fdatasync. Large bodies are synced, renamed and
// their directory synced before the commit that names them; files that no row names
// are swept when the account is opened. A kill at any moment leaves the state after
// some commit.
//
// Commits: one goroutine an account takes all that waits and applies it in one
// bbolt transaction (two syncs, however many Txs). A Tx that fails half-way is taken
// back by putting every value it changed back as it was, so it leaves the others of
// its group untouched; when the transaction itself fails, all of its Txs fail.
// Snapshots, flag sets and watchers see a Tx after it is on disk.
//
// A message has at most one entry in a mailbox: moving or sharing it to where it
// already lies answers with the entry that is there. COPY gives a message of its
// own with the source's bytes and flags, but not its tag, and not \Deleted, which
// belongs to the entry. MOVE within one mailbox gives new UIDs (RFC 6851 section
// 3.3).
//
// Flags lie in the entries' rows: a change of flags of a message with one entry and no
// tag reads and writes that row alone. Files of the schema before are brought to the
// present one when they are opened, in one transaction.
//
// Space: bodies in files go with their last reference. A mail.db that is half free pages
// is written anew while it is in use (compact.go); writers are held for the last sync,
// some 50 ms at 1 GB. While the disk is almost full a person adds nothing (space.go).
//
// Start: a file that was closed in order opens in a time that does not depend on the
// bytes of its messages, which are looked through for damage afterwards; one whose
// process was killed is looked through before.
//
// Reads copy at most 256 KiB out of a bbolt transaction before they call anybody.
package boltstore
