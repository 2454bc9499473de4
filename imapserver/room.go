package imapserver

import "pizza/mailbox"

// room refuses a message for which the disk has no room, before it is read. The commit
// asks once more: this is only so that nothing is written in vain.
func (c *conn) room(size int64) error {
	sp, err := c.srv.opt.Store.Space(c.ctx, c.ident.Account)
	if err != nil {
		return err
	}
	if !sp.Takes(size) {
		return &mailbox.Error{Op: "append", Kind: mailbox.Full}
	}
	return nil
}
