package mailfile

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Frames carry messages from one process to another: a line of JSON, then the message's
// octets. The last one says that there are no more, so that a stream that was cut off is
// told from a whole one.

type frame struct {
	Folder string    `json:"folder,omitempty"`
	Date   time.Time `json:"date,omitzero"`
	Flags  []string  `json:"flags,omitempty"`
	Where  string    `json:"where,omitempty"`
	Size   int64     `json:"size"` // -1: a folder
	End    bool      `json:"end,omitempty"`
	Error  string    `json:"error,omitempty"` // of End: why it is not all
}

// FrameWriter writes frames.
type FrameWriter struct{ w io.Writer }

// NewFrameWriter writes frames to w.
func NewFrameWriter(w io.Writer) *FrameWriter { return &FrameWriter{w} }

// Folder names a folder; Add says the folder itself too.
func (f *FrameWriter) Folder(name string) error { return f.line(frame{Folder: name, Size: -1}) }

// Add writes a message.
func (f *FrameWriter) Add(m Message) error {
	err := f.line(frame{Folder: m.Folder, Date: m.Date, Flags: m.Flags, Where: m.Where, Size: int64(len(m.Body))})
	if err == nil {
		_, err = f.w.Write(m.Body)
	}
	return err
}

// End ends the stream; with an error it tells the reader why.
func (f *FrameWriter) End(cause error) error {
	last := frame{End: true}
	if cause != nil {
		last.Error = cause.Error()
	}
	return f.line(last)
}

func (f *FrameWriter) line(v frame) error {
	b, err := json.Marshal(v)
	if err == nil {
		_, err = f.w.Write(append(b, '\n'))
	}
	return err
}

// ReadFrames calls fn with each message and folder (Body nil) of a stream up to its end.
// The error of End is *Error; a stream without an end is io.ErrUnexpectedEOF.
func ReadFrames(r io.Reader, fn func(Message) error) error {
	br := bufio.NewReaderSize(r, 256<<10)
	for {
		line, err := br.ReadBytes('\n')
		if err != nil {
			return cutOff(err)
		}
		var v frame
		if err := json.Unmarshal(line, &v); err != nil {
			return fmt.Errorf("frames: %w", err)
		}
		switch {
		case v.Error != "":
			return &Error{Where: "server", Text: v.Error}
		case v.End:
			return nil
		case v.Size > MaxMessage:
			return fmt.Errorf("frames: %d octets in one", v.Size)
		}
		m := Message{Folder: v.Folder, Date: v.Date, Flags: v.Flags, Where: v.Where}
		if v.Size >= 0 {
			m.Body = make([]byte, v.Size)
			if _, err := io.ReadFull(br, m.Body); err != nil {
				return cutOff(err)
			}
		}
		if err := fn(m); err != nil {
			return err
		}
	}
}

func cutOff(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
