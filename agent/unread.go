package agent

import (
	"context"
	"time"

	"pizza/mailbox"
)

// unreadRule is what Unread shows: every unseen message of every mailbox but those that
// the person has thrown away.
func unreadRule(on bool) mailbox.ViewRule {
	return mailbox.ViewRule{Mailbox: Unread, On: on, Except: []mailbox.MailboxID{Junk, Trash}}
}

// tendUnread keeps Unread switched as the account's settings say, until ctx ends. It is
// apart from what else is tended: to fill a view over a large account takes a while.
func (a *Agent) tendUnread(ctx context.Context, account mailbox.AccountID) {
	look := time.NewTicker(tendAccounts)
	defer look.Stop()
	for ctx.Err() == nil {
		a.keepUnread(ctx, account)
		select {
		case <-ctx.Done():
		case <-look.C:
		}
	}
}

// keepUnread switches Unread on or off as the account's settings say now. While they say
// what is so, it changes nothing.
func (a *Agent) keepUnread(ctx context.Context, account mailbox.AccountID) {
	o, err := a.owner(ctx, account)
	if err == nil {
		err = a.store.SetView(ctx, account, unreadRule(a.opt.Account(o.Login).Unread))
	}
	if err != nil && ctx.Err() == nil && !isKind(err, mailbox.NotFound) { // an account without a login has no settings
		a.log.ErrorContext(ctx, "switch Unread", "err", err)
	}
}
