//go:build e2e || soak

package e2e

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"
)

// folder is what a mail program knows of a mailbox that it alone changes.
type folder struct {
	name     string
	validity uint32
	mails    map[imap.UID]stamp
	seen     map[imap.UID]string // subject under each UID ever met: a UID is never used again
}

// stamp is a message as far as this test changes it.
type stamp struct {
	subject  string
	flagged  bool
	deleted  bool
	answered bool
}

// owner is a mail program with two mailboxes of its own. What the server acknowledged
// is in them; at most one command, told by maybe, may have happened or not.
type owner struct {
	t     *testing.T
	rnd   *rand.Rand
	boxes [2]*folder
	made  int
	acked int
	maybe func() // applies the command that was not acknowledged; nil: there is none
}

// killMail kills the server under load and checks after each start that all which was
// acknowledged is there and that what was not is there wholly or not at all.
func killMail(t *testing.T, kills int) {
	t.Parallel()
	s := newServer(t)
	owners := make([]*owner, 4)
	for i := range owners {
		owners[i] = &owner{t: t, rnd: rand.New(rand.NewPCG(uint64(i), 11))}
		for k := range owners[i].boxes {
			owners[i].boxes[k] = &folder{name: fmt.Sprintf("owner%d-%d", i, k), mails: map[imap.UID]stamp{}, seen: map[imap.UID]string{}}
		}
	}
	rnd := rand.New(rand.NewPCG(uint64(kills), 5))
	password := ""
	for range kills {
		s.start()
		if password == "" {
			password = readPasswordFile(t, s)
		}
		var busy sync.WaitGroup
		for _, o := range owners {
			busy.Go(func() { o.live(s.endpoints.IMAP, password) })
		}
		pause(time.Duration(80+rnd.IntN(150)) * time.Millisecond)
		s.kill()
		busy.Wait()
		if t.Failed() {
			return
		}
	}
	s.start()
	acked := 0
	for _, o := range owners {
		acked += o.acked
		c, err := dialIMAP(s.endpoints.IMAP, password)
		if err != nil {
			t.Fatal(err)
		}
		o.check(c)
		c.Close()
	}
	t.Logf("%d kills, %d changes acknowledged", kills, acked)
	if acked < 5*kills {
		t.Errorf("only %d changes were acknowledged in %d lives", acked, kills)
	}
}

// live changes mail until the server dies.
func (o *owner) live(addr, password string) {
	c, err := dialIMAP(addr, password)
	if err != nil {
		return
	}
	defer c.Close()
	if !o.check(c) {
		return
	}
	for {
		err := o.act(c)
		var refused *imap.Error
		if errors.As(err, &refused) {
			o.t.Errorf("%s: %v", o.boxes[0].name, err)
		}
		if err != nil {
			return
		}
		o.acked++
	}
}

// check compares with the server what should be there; false when the connection broke.
func (o *owner) check(c *imapclient.Client) bool {
	var now [2]map[imap.UID]stamp
	for k, f := range o.boxes {
		var ok bool
		if now[k], ok = f.fetch(o.t, c); !ok {
			return false
		}
	}
	if o.holds(now) {
		o.maybe = nil
		return true
	}
	if o.maybe != nil {
		o.maybe()
		o.maybe = nil
		o.learn(now)
	}
	if !o.holds(now) {
		o.t.Errorf("%s: is %v, want %v", o.boxes[0].name, now, [2]map[imap.UID]stamp{o.boxes[0].mails, o.boxes[1].mails})
		return false
	}
	return true
}

func (o *owner) holds(now [2]map[imap.UID]stamp) bool {
	return maps.Equal(now[0], o.boxes[0].mails) && maps.Equal(now[1], o.boxes[1].mails)
}

// learn gives the UID to the message that an unacknowledged command has brought, which
// is noted under UID 0.
func (o *owner) learn(now [2]map[imap.UID]stamp) {
	for k, f := range o.boxes {
		m, brought := f.mails[0]
		if !brought {
			continue
		}
		for uid, got := range now[k] {
			if _, known := f.mails[uid]; !known && got == m {
				delete(f.mails, 0)
				f.mails[uid] = m
			}
		}
	}
}

// fetch returns what the server has, and checks what never changes.
func (f *folder) fetch(t *testing.T, c *imapclient.Client) (map[imap.UID]stamp, bool) {
	err := c.Create(f.name, nil).Wait()
	var refused *imap.Error
	if err != nil && (!errors.As(err, &refused) || refused.Code != imap.ResponseCodeAlreadyExists) {
		return nil, false
	}
	sel, err := c.Select(f.name, nil).Wait()
	if err != nil {
		return nil, false
	}
	if f.validity != 0 && f.validity != sel.UIDValidity {
		t.Errorf("%s: UIDVALIDITY went from %d to %d", f.name, f.validity, sel.UIDValidity)
	}
	f.validity = sel.UIDValidity
	now := map[imap.UID]stamp{}
	if sel.NumMessages == 0 {
		return now, true
	}
	list, err := c.Fetch(imap.SeqSet{{Start: 1, Stop: 0}}, &imap.FetchOptions{UID: true, Flags: true, Envelope: true}).Collect()
	if err != nil {
		return nil, false
	}
	for _, m := range list {
		has := func(flag imap.Flag) bool { return slices.Contains(m.Flags, flag) }
		now[m.UID] = stamp{m.Envelope.Subject, has(imap.FlagFlagged), has(imap.FlagDeleted), has(imap.FlagAnswered)}
		if before, met := f.seen[m.UID]; met && before != m.Envelope.Subject {
			t.Errorf("%s: UID %d was %s and is %s", f.name, m.UID, before, m.Envelope.Subject)
		}
		f.seen[m.UID] = m.Envelope.Subject
		if m.UID >= sel.UIDNext {
			t.Errorf("%s: UID %d with UIDNEXT %d", f.name, m.UID, sel.UIDNext)
		}
	}
	return now, true
}

// act sends one command. An error is the kill, and leaves maybe set.
func (o *owner) act(c *imapclient.Client) error {
	k := o.rnd.IntN(2)
	f, other := o.boxes[k], o.boxes[1-k]
	uid, m := f.pick(o.rnd)
	if uid == 0 || o.rnd.IntN(3) == 0 {
		return o.append(c, f)
	}
	if _, err := c.Select(f.name, nil).Wait(); err != nil {
		return err
	}
	switch o.rnd.IntN(5) {
	case 0, 1:
		m.flagged, m.answered, m.deleted = o.rnd.IntN(2) == 0, o.rnd.IntN(2) == 0, o.rnd.IntN(2) == 0
		return o.after(func() { f.mails[uid] = m }, func() error {
			return c.Store(imap.UIDSetNum(uid), &imap.StoreFlags{Op: imap.StoreFlagsSet, Flags: m.list()}, nil).Close()
		})
	case 2:
		m.deleted = false
		return o.brings(other, m, func() { delete(f.mails, uid) }, func() (imap.UID, error) {
			got, err := c.Move(imap.UIDSetNum(uid), other.name).Wait()
			if err != nil {
				return 0, err
			}
			return only(got.DestUIDs), nil
		})
	case 3:
		m.deleted = false
		return o.brings(other, m, func() {}, func() (imap.UID, error) {
			got, err := c.Copy(imap.UIDSetNum(uid), other.name).Wait()
			if err != nil {
				return 0, err
			}
			return only(got.DestUIDs), nil
		})
	}
	return o.after(func() { maps.DeleteFunc(f.mails, func(_ imap.UID, m stamp) bool { return m.deleted }) },
		func() error { return c.Expunge().Close() })
}

func only(set imap.NumSet) imap.UID {
	if uids, ok := set.(imap.UIDSet); ok && len(uids) == 1 {
		return uids[0].Start
	}
	return 0
}

func (f *folder) pick(rnd *rand.Rand) (imap.UID, stamp) {
	if len(f.mails) == 0 {
		return 0, stamp{}
	}
	uids := slices.Sorted(maps.Keys(f.mails))
	uid := uids[rnd.IntN(len(uids))]
	return uid, f.mails[uid]
}

func (m stamp) list() (flags []imap.Flag) {
	for _, f := range []struct {
		on   bool
		flag imap.Flag
	}{{m.flagged, imap.FlagFlagged}, {m.answered, imap.FlagAnswered}, {m.deleted, imap.FlagDeleted}} {
		if f.on {
			flags = append(flags, f.flag)
		}
	}
	return flags
}

func (o *owner) append(c *imapclient.Client, f *folder) error {
	o.made++
	m := stamp{subject: fmt.Sprintf("%s mail %d", f.name, o.made), flagged: o.rnd.IntN(2) == 0}
	text := "Subject: " + m.subject + "\r\n\r\n" + strings.Repeat("text\r\n", o.rnd.IntN(400))
	if o.rnd.IntN(10) == 0 {
		text += strings.Repeat("a large body lies in a file of its own\r\n", 5000)
	}
	return o.brings(f, m, func() {}, func() (imap.UID, error) {
		cmd := c.Append(f.name, int64(len(text)), &imap.AppendOptions{Flags: m.list()})
		_, err := cmd.Write([]byte(text))
		if err = errors.Join(err, cmd.Close()); err != nil {
			return 0, err
		}
		got, err := cmd.Wait()
		if err != nil {
			return 0, err
		}
		return got.UID, nil
	})
}

// brings runs a command that gives f a message. The server says its UID, if it can.
func (o *owner) brings(f *folder, m stamp, also func(), run func() (imap.UID, error)) error {
	o.maybe = func() { also(); f.mails[0] = m }
	uid, err := run()
	if err != nil {
		return err
	}
	o.maybe = nil
	also()
	if _, met := f.seen[uid]; met || uid == 0 {
		o.t.Errorf("%s: %s got UID %d again", f.name, m.subject, uid)
	}
	f.mails[uid], f.seen[uid] = m, m.subject
	return nil
}

// after runs a command and then notes what it does.
func (o *owner) after(done func(), run func() error) error {
	o.maybe = done
	if err := run(); err != nil {
		return err
	}
	o.maybe = nil
	done()
	return nil
}
