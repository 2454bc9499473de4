package agent

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

// canonical is a JSON object in the form of RFC 8785: members sorted, no blanks, one
// way to write each value. It is what is shown, hashed and executed. Two things are
// stricter than the RFC, because what is shown must be what runs: an object with a
// name twice is refused, and an integer keeps all its digits.
func canonical(args json.RawMessage) (json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.UseNumber()
	var out bytes.Buffer
	if err := writeValue(&out, dec, 0); err != nil {
		return nil, fmt.Errorf("arguments: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("arguments: more than one value")
	}
	if out.Bytes()[0] != '{' {
		return nil, errors.New("arguments: not a JSON object")
	}
	return out.Bytes(), nil
}

// hashArgs is the hash a decision is bound to.
func hashArgs(canonical json.RawMessage) string {
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:])
}

const maxNesting = 200

func writeValue(w *bytes.Buffer, dec *json.Decoder, depth int) error {
	tok, err := dec.Token()
	if err != nil {
		return err
	}
	if depth > maxNesting {
		return errors.New("nested too deeply")
	}
	switch v := tok.(type) {
	case json.Delim:
		if v == '{' {
			return writeObject(w, dec, depth)
		}
		return writeArray(w, dec, depth)
	case json.Number:
		return writeNumber(w, string(v))
	case string:
		writeString(w, v)
	case bool:
		w.WriteString(strconv.FormatBool(v))
	default:
		w.WriteString("null")
	}
	return nil
}

func writeArray(w *bytes.Buffer, dec *json.Decoder, depth int) error {
	w.WriteByte('[')
	for i := 0; dec.More(); i++ {
		if i > 0 {
			w.WriteByte(',')
		}
		if err := writeValue(w, dec, depth+1); err != nil {
			return err
		}
	}
	w.WriteByte(']')
	_, err := dec.Token()
	return err
}

type member struct {
	units []uint16 // the name in UTF-16, the order of RFC 8785 section 3.2.3
	text  []byte
}

func writeObject(w *bytes.Buffer, dec *json.Decoder, depth int) error {
	var members []member
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return err
		}
		name, _ := tok.(string) // the decoder lets nothing else be a name
		var one bytes.Buffer
		writeString(&one, name)
		one.WriteByte(':')
		if err := writeValue(&one, dec, depth+1); err != nil {
			return err
		}
		members = append(members, member{utf16.Encode([]rune(name)), one.Bytes()})
	}
	slices.SortFunc(members, func(x, y member) int { return slices.Compare(x.units, y.units) })
	w.WriteByte('{')
	for i, m := range members {
		if i > 0 {
			if slices.Equal(m.units, members[i-1].units) {
				return fmt.Errorf("the name %q stands there twice", string(utf16.Decode(m.units)))
			}
			w.WriteByte(',')
		}
		w.Write(m.text)
	}
	w.WriteByte('}')
	_, err := dec.Token()
	return err
}

// writeNumber writes integers with all their digits and other numbers as ECMAScript
// does (RFC 8785 section 3.2.2.3).
func writeNumber(w *bytes.Buffer, s string) error {
	if !strings.ContainsAny(s, ".eE") {
		if s == "-0" {
			s = "0"
		}
		w.WriteString(s)
		return nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return fmt.Errorf("number %s: %w", s, err)
	}
	w.WriteString(ecmaNumber(f))
	return nil
}

func ecmaNumber(f float64) string {
	if f == 0 {
		return "0"
	}
	format := byte('f')
	if abs := math.Abs(f); abs < 1e-6 || abs >= 1e21 {
		format = 'e'
	}
	s := strconv.FormatFloat(f, format, -1, 64)
	if mantissa, exp, ok := strings.Cut(s, "e"); ok { // "e-07" -> "e-7", "e+21" stays
		s = mantissa + "e" + exp[:1] + cmp.Or(strings.TrimLeft(exp[1:], "0"), "0")
	}
	return s
}

// writeString escapes what RFC 8785 section 3.2.2.2 says and nothing else.
func writeString(w *bytes.Buffer, s string) {
	w.WriteByte('"')
	from := 0 // of what is written as it is
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		w.WriteString(s[from:i])
		from = i + 1
		if k := strings.IndexByte("\b\t\n\f\r", c); k >= 0 {
			w.WriteByte('\\')
			w.WriteByte("btnfr"[k])
		} else if c < ' ' {
			fmt.Fprintf(w, `\u%04x`, c)
		} else {
			w.WriteByte('\\')
			w.WriteByte(c)
		}
	}
	w.WriteString(s[from:])
	w.WriteByte('"')
}
