package agent

import (
	"bytes"
	"context"
	"io"
	"math"
	"strconv"
	"strings"

	"pizza/internal/mail"
	"pizza/internal/mime"
	"pizza/internal/msgid"
	"pizza/mailbox"
)

// sheet is a mail of ours to an owner: what stands in every one of them, whatever it is about.
func (a *Agent) sheet(o owner, kind string) mail.Outgoing {
	return mail.Outgoing{
		From:          mail.Address{Name: "Pizza", Local: pizzaUser, Host: a.opt.Domain},
		To:            mail.Address{Name: o.Name, Local: o.Login, Host: a.opt.Domain},
		MessageID:     msgid.New(),
		Date:          a.now(),
		AutoSubmitted: "auto-generated",
		Headers:       [][2]string{{"X-Pizza-Kind", kind}},
	}
}

// letter is a mail of ours about a run: what stands in every one of them.
func (a *Agent) letter(o owner, th *Thread, kind, run string, answers Inbound) mail.Outgoing {
	out := a.sheet(o, kind)
	out.Subject = mail.ReplySubject(answers.Subject)
	out.InReplyTo, out.References = answers.MessageID, th.chainTo(answers.MessageID)
	out.AutoSubmitted = "auto-replied"
	out.Headers = append(out.Headers, [2]string{"X-Pizza-Task", th.Task})
	if run != "" {
		out.Headers = append(out.Headers, [2]string{"X-Pizza-Run", run})
	}
	if th.Token != "" {
		out.ReplyTo = &mail.Address{Name: "Pizza", Local: pizzaUser + "+t." + th.Token, Host: a.opt.Domain}
	}
	return out
}

// asks makes out a mail that a decision is answered by a reply to.
func (a *Agent) asks(out *mail.Outgoing, decision string) {
	out.ReplyTo = &mail.Address{Name: "Pizza decision", Local: pizzaUser + "+a." + decision, Host: a.opt.Domain}
	out.Headers = append(out.Headers, [2]string{"X-Pizza-Approval", decision})
}

// chainTo is the References field of a mail that answers messageID (RFC 5322
// section 3.6.4): the chain to it, and itself.
func (th *Thread) chainTo(messageID string) []string {
	if messageID == "" {
		return nil
	}
	var chain []string
	for _, id := range th.References {
		if id == messageID {
			break
		}
		chain = append(chain, id)
	}
	return append(chain, messageID)
}

// post composes and stages a mail of ours and completes the op that stores it.
func (a *Agent) post(ctx context.Context, account mailbox.AccountID, out mail.Outgoing, add mailbox.AddMessage) (mailbox.AddMessage, error) {
	blob, structure, err := a.stageMail(ctx, account, out)
	if err != nil {
		return add, err
	}
	id, err := a.store.NextMessageID(account)
	if err != nil {
		return add, err
	}
	add.ID, add.Blob, add.Structure, add.Date = id, blob, structure, out.Date
	return add, nil
}

// stageMail writes the mail to the store: small ones from memory, those with files
// as a stream.
func (a *Agent) stageMail(ctx context.Context, account mailbox.AccountID, out mail.Outgoing) (mailbox.Blob, *mime.Structure, error) {
	if len(out.Attachments) == 0 {
		var buf bytes.Buffer
		if err := mail.Compose(&buf, out); err != nil {
			return mailbox.Blob{}, nil, err
		}
		blob, err := a.store.Stage(ctx, account, bytes.NewReader(buf.Bytes()), 0)
		if err != nil {
			return blob, nil, err
		}
		s, err := mime.Parse(bytes.NewReader(buf.Bytes()), int64(buf.Len()))
		return blob, s, err
	}
	r, w := io.Pipe()
	go func() { w.CloseWithError(mail.Compose(w, out)) }() // ends with Stage: it reads to the end, or closes r
	blob, err := a.store.Stage(ctx, account, r, 0)
	r.CloseWithError(io.ErrClosedPipe)
	if err != nil {
		return blob, nil, err
	}
	body, err := a.store.OpenBlob(ctx, account, blob.ID)
	if err != nil {
		return blob, nil, err
	}
	defer body.Close()
	s, err := mime.Parse(body, body.Size())
	return blob, s, err
}

// usageHeader is the value of X-Pizza-Usage.
func usageHeader(st *State) string {
	s := st.Spent()
	parts := []string{
		"steps=" + strconv.Itoa(s.ModelCalls), "tools=" + strconv.Itoa(s.ToolCalls),
		"in=" + strconv.Itoa(s.Usage.Input), "out=" + strconv.Itoa(s.Usage.Output),
	}
	if s.Usage.Cost > 0 {
		parts = append(parts, "cost="+strconv.FormatFloat(math.Round(s.Usage.Cost*1e6)/1e6, 'f', -1, 64))
	}
	return strings.Join(parts, "; ")
}
