package imapserver

import (
	"bytes"
	"crypto/tls"
	"io"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"
)

// TestDailyUse does with another implementation what a person does in a day.
func TestDailyUse(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	exists := make(chan uint32, 10)
	opt := &imapclient.Options{TLSConfig: &tls.Config{InsecureSkipVerify: true}, // the test's own certificate
		UnilateralDataHandler: &imapclient.UnilateralDataHandler{Mailbox: func(d *imapclient.UnilateralDataMailbox) {
			if d.NumMessages != nil {
				exists <- *d.NumMessages
			}
		}}}
	c, err := imapclient.DialTLS(h.tls, opt)
	check(t, err)
	defer c.Close()
	check(t, c.Login("me", "secret").Wait())
	boxes, err := c.List("", "*", &imap.ListOptions{ReturnStatus: &imap.StatusOptions{NumMessages: true}}).Collect()
	check(t, err)
	if len(boxes) != 6 || boxes[0].Mailbox != "INBOX" || *boxes[0].Status.NumMessages != 0 {
		t.Fatalf("LIST = %+v", boxes)
	}
	data, err := c.Select("INBOX", nil).Wait()
	check(t, err)
	if data.NumMessages != 0 {
		t.Fatal(data)
	}
	appendOne(t, c, exists)
	pushed(t, h, c, exists)
	readAndFile(t, c)
	check(t, c.Logout().Wait())
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func appendOne(t *testing.T, c *imapclient.Client, exists chan uint32) {
	a := c.Append("INBOX", int64(len(mail)), &imap.AppendOptions{Flags: []imap.Flag{imap.FlagSeen}, Time: time.Unix(1769000000, 0)})
	_, err := io.WriteString(a, mail)
	check(t, err)
	check(t, a.Close())
	got, err := a.Wait()
	check(t, err)
	if n := <-exists; got.UID != 1 || n != 1 {
		t.Errorf("APPEND = %+v, EXISTS %d", got, n)
	}
}

// pushed waits in IDLE for mail that comes in.
func pushed(t *testing.T, h *house, c *imapclient.Client, exists chan uint32) {
	idle, err := c.Idle()
	check(t, err)
	h.deliver("INBOX", []byte(mail))
	select {
	case n := <-exists:
		if n != 2 {
			t.Errorf("EXISTS %d", n)
		}
	case <-time.After(10 * time.Second):
		t.Error("nothing was pushed")
	}
	check(t, idle.Close())
	check(t, idle.Wait())
}

func readAndFile(t *testing.T, c *imapclient.Client) {
	found, err := c.UIDSearch(&imap.SearchCriteria{NotFlag: []imap.Flag{imap.FlagSeen}}, &imap.SearchOptions{ReturnAll: true}).Wait()
	check(t, err)
	if uids := found.AllUIDs(); len(uids) != 1 || uids[0] != 2 {
		t.Fatalf("UNSEEN = %v", uids)
	}
	msgs, err := c.Fetch(imap.UIDSetNum(2), &imap.FetchOptions{UID: true, Flags: true, Envelope: true, InternalDate: true, RFC822Size: true,
		BodyStructure: &imap.FetchItemBodyStructure{Extended: true}, BodySection: []*imap.FetchItemBodySection{{}}}).Collect()
	check(t, err)
	m := msgs[0]
	if m.Envelope.Subject != "Hello" || m.RFC822Size != int64(len(mail)) || m.BodyStructure.MediaType() != "text/plain" ||
		!bytes.Equal(m.FindBodySection(&imap.FetchItemBodySection{}), []byte(mail)) {
		t.Errorf("FETCH = %+v", m)
	}
	check(t, c.Store(imap.UIDSetNum(2), &imap.StoreFlags{Op: imap.StoreFlagsAdd, Flags: []imap.Flag{"$label1"}}, nil).Close())
	moved, err := c.Move(imap.UIDSetNum(2), "Trash").Wait()
	check(t, err)
	if moved.DestUIDs.String() != "1" {
		t.Errorf("MOVE = %+v", moved)
	}
	st, err := c.Status("Trash", &imap.StatusOptions{NumMessages: true, NumUnseen: true}).Wait()
	check(t, err)
	if *st.NumMessages != 1 || *st.NumUnseen != 0 {
		t.Errorf("STATUS = %+v", st)
	}
	check(t, c.Create("Projects/Pizza", nil).Wait())
	copied, err := c.Copy(imap.UIDSetNum(1), "Projects/Pizza").Wait()
	check(t, err)
	if copied.SourceUIDs.String() != "1" {
		t.Errorf("COPY = %+v", copied)
	}
	check(t, c.Store(imap.UIDSetNum(1), &imap.StoreFlags{Op: imap.StoreFlagsAdd, Silent: true, Flags: []imap.Flag{imap.FlagDeleted}}, nil).Close())
	gone, err := c.Expunge().Collect()
	check(t, err)
	if len(gone) != 1 {
		t.Errorf("EXPUNGE = %v", gone)
	}
}
