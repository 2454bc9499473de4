package mime

// base64State decodes base64 leniently: what is not of the alphabet is passed over,
// padding ends a quantum (several encoded texts may follow each other), a cut end
// yields what is whole.
type base64State struct {
	bits uint32
	n    uint8 // characters in bits
}

const (
	b64Skip = 0xff
	b64Pad  = 0xfe
)

var base64Values = func() (t [256]byte) {
	for i := range t {
		t[i] = b64Skip
	}
	for i := range len(base64Alphabet) {
		t[base64Alphabet[i]] = byte(i)
	}
	t['='] = b64Pad
	t['-'], t['_'] = 62, 63 // RFC 4648 section 5
	return t
}()

// append decodes src to the end of dst.
func (d *base64State) append(dst, src []byte) []byte {
	for _, c := range src {
		v := base64Values[c]
		if v >= b64Pad {
			if v == b64Pad {
				dst = d.flush(dst)
			}
			continue
		}
		d.bits = d.bits<<6 | uint32(v)
		if d.n++; d.n == 4 {
			dst = append(dst, byte(d.bits>>16), byte(d.bits>>8), byte(d.bits))
			d.bits, d.n = 0, 0
		}
	}
	return dst
}

// flush yields the octets of an incomplete quantum.
func (d *base64State) flush(dst []byte) []byte {
	switch d.n {
	case 2:
		dst = append(dst, byte(d.bits>>4))
	case 3:
		dst = append(dst, byte(d.bits>>10), byte(d.bits>>2))
	}
	d.bits, d.n = 0, 0
	return dst
}

func decodeBase64(b []byte) []byte {
	var d base64State
	return d.flush(d.append(make([]byte, 0, len(b)*3/4+3), b))
}
