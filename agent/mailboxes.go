package agent

import (
	"github.com/emersion/go-imap/v2"

	"pizza/mailbox"
)

// SystemMailboxes lists the mailboxes every account has beside INBOX, for
// Store.CreateAccount.
func SystemMailboxes() []mailbox.Mailbox {
	return []mailbox.Mailbox{
		{ID: Action, Name: "Action", SpecialUse: imap.MailboxAttrImportant, System: true, Subscribed: true},
		{ID: Approve, Name: "Action/Approve", System: true, Subscribed: true},
		{ID: Reject, Name: "Action/Reject", System: true, Subscribed: true},
		{ID: Running, Name: "Running", System: true, Subscribed: true},
		{ID: Memory, Name: "Memory", System: true, Subscribed: true},
		{ID: Schedules, Name: "Schedules", System: true, Subscribed: true},
		{ID: Tasks, Name: "Tasks", System: true, Subscribed: true},
		{ID: Unread, Name: "Unread", System: true, Subscribed: true, Hidden: true, View: true},
		{ID: Sent, Name: "Sent", SpecialUse: imap.MailboxAttrSent, System: true, Subscribed: true},
		{ID: Drafts, Name: "Drafts", SpecialUse: imap.MailboxAttrDrafts, System: true, Subscribed: true},
		{ID: Archive, Name: "Archive", SpecialUse: imap.MailboxAttrArchive, System: true, Subscribed: true},
		{ID: Junk, Name: "Junk", SpecialUse: imap.MailboxAttrJunk, System: true, Subscribed: true},
		{ID: Trash, Name: "Trash", SpecialUse: imap.MailboxAttrTrash, System: true, Subscribed: true},
	}
}
