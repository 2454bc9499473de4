package mailfile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"pizza/internal/mutf7"
)

// A Maildir is a folder with cur, new and tmp in it; a message is a file. Flags are
// letters at the end of its name, keywords the letters a to z by the file
// dovecot-keywords; the date is the file's time of change. Folders are Maildirs beside
// cur whose name begins with a dot and has a dot between levels (Maildir++), in modified
// UTF-7. Dots in levels are written \2e, a backslash \5c, as Dovecot's listescape does.
//
// S= in a name is the file's size, W= the message's with CRLF line ends: when both are
// the same the message is exactly what is in the file, else LF stands for CRLF.

// infoSep comes before the flags; a colon cannot be in a name everywhere.
var infoSep = map[bool]string{false: ":", true: ";"}[runtime.GOOS == "windows"]

// maildirLetters in the order in which they are written.
var maildirLetters = []struct {
	letter byte
	flag   string
}{{'D', `\Draft`}, {'F', `\Flagged`}, {'P', "$Forwarded"}, {'R', `\Answered`}, {'S', `\Seen`}, {'T', `\Deleted`}}

const (
	keywordFile = "dovecot-keywords"
	maxKeywords = 26
)

// maildirSink writes a Maildir with its folders.
type maildirSink struct {
	dir      string // of the account
	box      string // of the folder at work
	keywords []string
	n        int
}

// NewMaildir writes a Maildir into a folder, which it makes. INBOX is the folder itself.
func NewMaildir(dir string) (Sink, error) {
	s := &maildirSink{dir: dir}
	return s, os.MkdirAll(dir, 0o700)
}

func (s *maildirSink) Folder(name string) error {
	if err := s.Close(); err != nil {
		return err
	}
	s.box, s.keywords = s.dir, nil
	if name != "INBOX" {
		s.box = filepath.Join(s.dir, maildirName(name))
	}
	for _, sub := range []string{"cur", "new", "tmp"} {
		if err := os.MkdirAll(s.box, 0o700); err != nil {
			return err
		}
		if err := os.Mkdir(filepath.Join(s.box, sub), 0o700); err != nil {
			return err
		}
	}
	if s.box == s.dir {
		return nil
	}
	return os.WriteFile(filepath.Join(s.box, "maildirfolder"), nil, 0o600)
}

// maildirName is the directory of a folder.
func maildirName(folder string) string {
	levels := strings.Split(folder, "/")
	for i, l := range levels {
		l = strings.NewReplacer(`\`, `\5c`, `.`, `\2e`).Replace(mutf7.Encode(l))
		if runtime.GOOS == "windows" {
			l = escape(l, func(i int, c byte) bool { return badInFile(1, c) && c != '\\' })
		}
		levels[i] = l
	}
	return "." + strings.Join(levels, ".")
}

// folderOf undoes maildirName.
func folderOf(name string) string {
	levels := strings.Split(strings.TrimPrefix(name, "."), ".")
	for i, l := range levels {
		l = strings.NewReplacer(`\2e`, `.`, `\2E`, `.`, `\5c`, `\`, `\5C`, `\`).Replace(l)
		if plain, err := mutf7.Decode(l); err == nil { // else it is UTF-8 already
			l = plain
		}
		levels[i] = l
	}
	return strings.Join(levels, "/")
}

// Close writes which letter is which keyword.
func (s *maildirSink) Close() error {
	if len(s.keywords) == 0 {
		return nil
	}
	var b strings.Builder
	for i, k := range s.keywords {
		fmt.Fprintf(&b, "%d %s\n", i, k)
	}
	s.keywords = nil
	return os.WriteFile(filepath.Join(s.box, keywordFile), []byte(b.String()), 0o600)
}

func (s *maildirSink) Add(m Message) error {
	s.n++
	body, whole := m.Body, int64(len(m.Body))
	if allCRLF(body) {
		body = toLF(body)
	}
	letters, lost := s.letters(m.Flags)
	name := fmt.Sprintf("%d.%d.pizza,S=%d,W=%d%s2,%s", m.Date.Unix(), s.n, len(body), whole, infoSep, letters)
	path := filepath.Join(s.box, "cur", name)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(body)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if !m.Date.IsZero() {
		if err := os.Chtimes(path, time.Time{}, m.Date); err != nil {
			return err
		}
	}
	if len(lost) > 0 {
		return &Error{Where: m.Where, Text: "a Maildir folder has room for 26 keywords; left out: " + strings.Join(lost, " ")}
	}
	return nil
}

// letters writes flags, giving new keywords their letter.
func (s *maildirSink) letters(flags []string) (letters string, lost []string) {
	var known []byte
	for _, l := range maildirLetters {
		if slices.Contains(flags, l.flag) {
			known = append(known, l.letter)
		}
	}
	var own []byte
	for _, f := range flags {
		if strings.HasPrefix(f, `\`) || f == "$Forwarded" {
			continue
		}
		i := slices.Index(s.keywords, f)
		if i < 0 && len(s.keywords) == maxKeywords {
			lost = append(lost, f)
			continue
		}
		if i < 0 {
			i = len(s.keywords)
			s.keywords = append(s.keywords, f)
		}
		own = append(own, 'a'+byte(i))
	}
	slices.Sort(own)
	return string(known) + string(own), lost
}

// isMaildir reports whether a folder is one.
func isMaildir(dir string) bool {
	info, err := os.Lstat(filepath.Join(dir, "cur"))
	return err == nil && info.IsDir()
}

// readMaildir calls fn with each message of a Maildir, in the order of their names, which
// begin with the time.
func readMaildir(dir, folder string, fn func(Message, error) error) error {
	if err := fn(Message{Folder: folder}, nil); err != nil {
		return err
	}
	keywords, err := readKeywords(filepath.Join(dir, keywordFile))
	if err != nil {
		if err := fn(Message{}, err); err != nil {
			return err
		}
	}
	var files []string
	for _, sub := range []string{"new", "cur"} {
		entries, err := readSub(filepath.Join(dir, sub))
		if err != nil {
			if err := fn(Message{}, err); err != nil {
				return err
			}
		}
		for _, e := range entries {
			if !e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
				files = append(files, filepath.Join(sub, e.Name()))
			}
		}
	}
	slices.SortStableFunc(files, compareMaildir)
	for _, f := range files {
		m, err := readMaildirFile(filepath.Join(dir, f), keywords)
		m.Folder = folder
		if err := fn(m, err); err != nil {
			return err
		}
	}
	return nil
}

// readSub lists new or cur of a Maildir, if it is there.
func readSub(dir string) ([]fs.DirEntry, error) {
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, unreadable(dir, err)
	case !info.IsDir():
		return nil, irregular(dir, info.Mode())
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, unreadable(dir, err)
	}
	return entries, nil
}

// compareMaildir orders by the numbers that names begin with: seconds, and what we and
// others put behind them.
func compareMaildir(x, y string) int {
	x, y = filepath.Base(x), filepath.Base(y)
	for {
		a, restX := number(x)
		b, restY := number(y)
		if a != b || restX == "" || restY == "" || restX[0] != '.' || restY[0] != '.' {
			if a != b {
				return int(max(-1, min(1, a-b)))
			}
			return strings.Compare(x, y)
		}
		x, y = strings.TrimLeft(restX[1:], "MPQRVX"), strings.TrimLeft(restY[1:], "MPQRVX")
	}
}

func number(s string) (int64, string) {
	i := 0
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	n, _ := strconv.ParseInt(s[:i], 10, 64)
	return n, s[i:]
}

func readMaildirFile(path string, keywords map[byte]string) (Message, error) {
	m := Message{Where: path}
	f, err := openFile(path, os.Lstat)
	if err != nil {
		return m, err
	}
	defer f.Close()
	body, when, err := readFile(f, path)
	if err != nil {
		return m, err
	}
	base, info, _ := strings.Cut(filepath.Base(path), infoSep+"2,")
	for i := range len(info) {
		if f := flagOf(info[i], keywords); f != "" && !slices.Contains(m.Flags, f) {
			m.Flags = append(m.Flags, f)
		}
	}
	size, virtual := field(base, "S"), field(base, "W")
	if exact := size >= 0 && size == virtual && size == int64(len(body)); !exact {
		body = toCRLF(body)
	}
	m.Body, m.Date = withoutTUID(body), when
	return m, nil
}

func flagOf(letter byte, keywords map[byte]string) string {
	for _, l := range maildirLetters {
		if l.letter == letter {
			return l.flag
		}
	}
	return keywords[letter]
}

// field reads a number that a name gives, -1 when it does not.
func field(base, key string) int64 {
	for part := range strings.SplitSeq(base, ",") {
		if v, ok := strings.CutPrefix(part, key+"="); ok {
			if n, err := strconv.ParseInt(v, 10, 64); err == nil {
				return n
			}
		}
	}
	return -1
}

// maxKeywordFile is how much of the keywords' file is read, in octets.
const maxKeywordFile = 1 << 20

// readKeywords reads which letter is which keyword.
func readKeywords(path string) (map[byte]string, error) {
	f, err := openFile(path, os.Lstat)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxKeywordFile))
	if err != nil {
		return nil, unreadable(path, err)
	}
	keywords := map[byte]string{}
	for sc := bufio.NewScanner(bytes.NewReader(b)); sc.Scan(); {
		n, word, ok := strings.Cut(sc.Text(), " ")
		if i, err := strconv.Atoi(n); ok && err == nil && i >= 0 && i < maxKeywords {
			keywords['a'+byte(i)] = word
		}
	}
	return keywords, nil
}
