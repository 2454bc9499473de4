package mime

import (
	"strconv"
	"strings"
)

// look is what inline style says about whether text in an element can be seen. It is
// inherited, and what is inside may override it (unlike display:none).
type look struct {
	tiny      bool // font-size next to nothing
	invisible bool // visibility
	fg, bg    colour
}

// colour is 0xRRGGBB, or one of these.
type colour int32

const (
	noColour    colour = -1 // not known
	transparent colour = -2
	white       colour = 0xffffff
)

func (l look) hidden() bool {
	if l.tiny || l.invisible || l.fg == transparent {
		return true
	}
	return l.fg >= 0 && l.bg >= 0 && near(l.fg, l.bg)
}

// near tells whether nobody can see the difference.
func near(a, b colour) bool {
	sum := colour(0)
	for shift := 0; shift < 24; shift += 8 {
		d := a>>shift&0xff - b>>shift&0xff
		sum += max(d, -d)
	}
	return sum <= 18
}

const maxDeclarations = 100

// declarations reads an inline style or the inside of a rule: the last of equal
// properties counts, !important before others.
func declarations(style string) map[string]string {
	out := make(map[string]string)
	strong := make(map[string]bool)
	style = cssPlain(style)
	for n := 0; style != "" && n < maxDeclarations; n++ {
		var d string
		d, style, _ = strings.Cut(style, ";")
		name, v, ok := strings.Cut(d, ":")
		if !ok {
			continue
		}
		name, v = strings.TrimSpace(name), strings.TrimSpace(v)
		v, important := strings.CutSuffix(strings.ReplaceAll(v, "! important", "!important"), "!important")
		if strong[name] && !important {
			continue
		}
		strong[name] = important
		out[name] = strings.TrimSpace(v)
	}
	return out
}

// cssPlain lowers the case of CSS and removes its comments and escapes.
func cssPlain(v string) string {
	v = strings.ToLower(v)
	if !strings.Contains(v, "/*") && !strings.Contains(v, `\`) {
		return v
	}
	var b strings.Builder
	for i := 0; i < len(v); i++ {
		switch {
		case strings.HasPrefix(v[i:], "/*"):
			end := strings.Index(v[i+2:], "*/")
			if end < 0 {
				return b.String()
			}
			i += end + 3
		case v[i] == '\\':
			j := i + 1
			for j < len(v) && j <= i+6 && unhex(v[j]) >= 0 {
				j++
			}
			if n, err := strconv.ParseUint(v[i+1:j], 16, 32); err == nil {
				b.WriteRune(rune(min(n, 0x10ffff)))
				if j < len(v) && v[j] == ' ' {
					j++
				}
				i = j - 1
			}
		default:
			b.WriteByte(v[i])
		}
	}
	return strings.ToLower(b.String())
}

// hides tells whether an element and all that is in it cannot be seen.
func hides(d map[string]string) bool {
	zero := func(name string) bool {
		v, ok := d[name]
		return ok && isZero(v)
	}
	clipped := strings.HasPrefix(d["overflow"], "hidden") || strings.HasPrefix(d["overflow"], "clip")
	moved := d["position"] == "absolute" || d["position"] == "fixed"
	switch {
	case d["display"] == "none", zero("max-height"), zero("max-width"):
		return true
	case zero("opacity"), zero("zoom"), strings.HasPrefix(d["transform"], "scale(0"):
		return !strings.HasPrefix(d["transform"], "scale(0.") || zero("opacity")
	case clipped && (zero("height") || zero("width")):
		return true
	case moved && (farOff(d["left"]) || farOff(d["top"]) || farOff(d["right"])):
		return true
	}
	return farOff(d["text-indent"]) || strings.HasPrefix(strings.ReplaceAll(d["clip"], " ", ""), "rect(0,0,0,0")
}

// isZero tells whether a number, with or without a unit, is zero or next to it.
func isZero(v string) bool {
	n, _, ok := number(v)
	return ok && n < 0.03
}

// farOff tells whether a position is out of sight.
func farOff(v string) bool {
	n, _, ok := number(v)
	return ok && n <= -500
}

// number reads a number and its unit.
func number(v string) (n float64, unit string, ok bool) {
	i := 0
	for i < len(v) && i < 32 && strings.IndexByte("+-.0123456789", v[i]) >= 0 {
		i++
	}
	n, err := strconv.ParseFloat(v[:i], 64)
	return n, strings.TrimSpace(v[i:]), err == nil
}

// apply returns the look of an element with these declarations inside of l.
func (l look) apply(d map[string]string) look {
	if v, ok := d["font"]; ok {
		for _, f := range strings.Fields(v) {
			if size, _, _ := strings.Cut(f, "/"); size != "" && (size[0] == '.' || size[0] >= '0' && size[0] <= '9') {
				l.tiny = l.tinyFont(size)
				break
			}
		}
	}
	if v, ok := d["font-size"]; ok {
		l.tiny = l.tinyFont(v)
	}
	switch d["visibility"] {
	case "hidden", "collapse":
		l.invisible = true
	case "visible", "initial":
		l.invisible = false
	}
	if v, ok := d["color"]; ok && v != "inherit" {
		l.fg = parseColour(v)
	}
	for _, name := range []string{"background", "background-color"} {
		if v, ok := d[name]; ok {
			l.bg = l.background(v)
		}
	}
	if v, ok := d["background-image"]; ok && v != "none" {
		l.bg = noColour
	}
	return l
}

// tinyFont tells whether a font size is too small to be seen: below 2 pixels.
func (l look) tinyFont(v string) bool {
	n, unit, ok := number(v)
	if !ok {
		return l.tiny && (v == "inherit" || v == "smaller" || v == "larger")
	}
	switch unit {
	case "%":
		return l.tiny || n*0.16 < 2
	case "em", "ex", "ch":
		return l.tiny || n*16 < 2
	case "rem":
		return n*16 < 2
	case "pt":
		return n*4/3 < 2
	case "", "px":
		return n < 2
	}
	return n < 0.1
}

func (l look) background(v string) colour {
	switch v {
	case "none", "transparent", "inherit", "initial", "0", "0 0":
		return l.bg
	}
	if strings.Contains(v, "url(") || strings.Contains(v, "gradient") {
		return noColour
	}
	if c := parseColour(v); c == transparent {
		return l.bg
	} else if c >= 0 {
		return c
	}
	for _, f := range strings.Fields(v) {
		if c := parseColour(f); c >= 0 {
			return c
		}
	}
	return noColour
}

var colourNames = map[string]colour{
	"white": white, "black": 0, "red": 0xff0000, "lime": 0x00ff00, "green": 0x008000, "blue": 0x0000ff,
	"yellow": 0xffff00, "gray": 0x808080, "grey": 0x808080, "silver": 0xc0c0c0, "maroon": 0x800000,
	"navy": 0x000080, "teal": 0x008080, "olive": 0x808000, "purple": 0x800080, "orange": 0xffa500,
	"snow": 0xfffafa, "ivory": 0xfffff0, "ghostwhite": 0xf8f8ff, "whitesmoke": 0xf5f5f5, "floralwhite": 0xfffaf0,
	"azure": 0xf0ffff, "mintcream": 0xf5fffa, "lightgray": 0xd3d3d3, "lightgrey": 0xd3d3d3, "gainsboro": 0xdcdcdc,
	"transparent": transparent,
}

// parseColour reads a name, #rgb, #rrggbb, rgb(…) or rgba(…).
func parseColour(v string) colour {
	v = strings.TrimSpace(strings.ToLower(v))
	if c, ok := colourNames[v]; ok {
		return c
	}
	if h, ok := strings.CutPrefix(v, "#"); ok {
		return hexColour(h)
	}
	in, ok := strings.CutPrefix(v, "rgb")
	if !ok {
		if len(v) == 6 {
			return hexColour(v) // bgcolor=ffffff
		}
		return noColour
	}
	in = strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(in, "a"), "("), ")")
	f := strings.FieldsFunc(in, func(r rune) bool { return r == ',' || r == ' ' || r == '/' })
	if len(f) < 3 {
		return noColour
	}
	if len(f) > 3 && isZero(f[3]) {
		return transparent
	}
	c := colour(0)
	for _, s := range f[:3] {
		n, unit, ok := number(s)
		if !ok {
			return noColour
		}
		if unit == "%" {
			n *= 2.55
		}
		c = c<<8 | colour(min(max(n, 0), 255))
	}
	return c
}

func hexColour(h string) colour {
	if len(h) == 8 || len(h) == 4 { // with alpha
		if strings.Trim(h[len(h)*3/4:], "0") == "" {
			return transparent
		}
		h = h[:len(h)*3/4]
	}
	if len(h) == 3 {
		h = string([]byte{h[0], h[0], h[1], h[1], h[2], h[2]})
	}
	n, err := strconv.ParseUint(h, 16, 32)
	if err != nil || len(h) != 6 {
		return noColour
	}
	return colour(n)
}

const maxRules = 1000

// sheet holds the simple selectors of style elements that hide what they select:
// "tag", ".class", "#id" and "tag.class". Rules inside @media hold only at times, so
// they do not count.
type sheet map[string]bool

func (s sheet) add(css string) {
	css = cssPlain(css)
	for css != "" && len(s) < maxRules {
		open := strings.IndexByte(css, '{')
		if open < 0 {
			return
		}
		selectors := strings.TrimSpace(css[:open])
		css = css[open+1:]
		if i := strings.LastIndexByte(selectors, ';'); i >= 0 { // @import …;
			selectors = strings.TrimSpace(selectors[i+1:])
		}
		if strings.HasPrefix(selectors, "@") {
			css = skipBlock(css)
			continue
		}
		var body string
		body, css, _ = strings.Cut(css, "}")
		d := declarations(body)
		if !hides(d) && !(look{fg: 0, bg: white}).apply(map[string]string{"font-size": d["font-size"], "visibility": d["visibility"]}).hidden() {
			continue
		}
		for sel := range strings.SplitSeq(selectors, ",") {
			if sel = strings.TrimSpace(sel); !strings.ContainsAny(sel, " >+~:[*") {
				s[sel] = true
			}
		}
	}
}

// skipBlock skips to behind the brace that closes a block.
func skipBlock(css string) string {
	depth := 1
	for i := 0; i < len(css); i++ {
		switch css[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return css[i+1:]
			}
		}
	}
	return ""
}

func (s sheet) hides(tag, id, class string) bool {
	if len(s) == 0 {
		return false
	}
	if s[tag] || id != "" && s["#"+id] {
		return true
	}
	for n, c := range strings.Fields(class) {
		if n < maxDeclarations && (s["."+c] || s[tag+"."+c]) {
			return true
		}
	}
	return false
}
