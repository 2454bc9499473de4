package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// tool is one row of the table of file tools.
type tool struct {
	name     string
	about    string
	class    Class // for /local; in /out a change is idempotent
	fields   []field
	check    func(*job) error // what the schema cannot say
	sentence func(*job) string
	run      func(context.Context, Workspace, *job) Outcome
}

// field is one argument.
type field struct {
	name     string
	kind     string // JSON Schema type: string, integer
	about    string
	optional bool
}

var pathField = field{name: "path", kind: "string", about: "Absolute path: /local/<folder>/..., /in/<file> or /out/<file>"}

// fileTools is the contract with models and scripts: names and arguments stay.
var fileTools = []tool{
	{
		name: "list_folder", class: ReadOnly,
		about:  "List a folder. / has three: /local (folders the owner granted, each /local/<id>), /in (attachments of the task), /out (files that go back to the person as attachments).",
		fields: []field{pathField},
		check:  func(*job) error { return nil }, sentence: sentenceList, run: runList,
	},
	{
		name: "read_file", class: ReadOnly,
		about: "Read a text file, whole or the lines from..to. Long files come in pieces; the answer says how to go on.",
		fields: []field{
			pathField,
			{name: "from", kind: "integer", about: "First line, counted from 1", optional: true},
			{name: "to", kind: "integer", about: "Last line, included", optional: true},
		},
		check: checkRead, sentence: sentenceRead, run: runRead,
	},
	{
		name: "search_files", class: ReadOnly,
		about:  "Search names and text of all files in a folder and its subfolders for a piece of text; letter case does not matter.",
		fields: []field{pathField, {name: "query", kind: "string", about: "Text to find"}},
		check:  checkSearch, sentence: sentenceSearch, run: runSearch,
	},
	{
		name: "write_file", class: OnceOnly,
		about:  "Write a text file, new or replacing what was there. Missing folders under /local/<id> are made.",
		fields: []field{pathField, {name: "content", kind: "string", about: "The whole content"}},
		check:  checkWrite, sentence: sentenceWrite, run: runWrite,
	},
	{
		name: "edit_file", class: OnceOnly,
		about: "Replace a piece of text in a file. The old text must occur exactly once.",
		fields: []field{
			pathField,
			{name: "old", kind: "string", about: "Text to replace, exactly as in the file"},
			{name: "new", kind: "string", about: "Text to put there"},
		},
		check: checkEdit, sentence: sentenceEdit, run: runEdit,
	},
	{
		name: "move_file", class: OnceOnly,
		about:  "Move or rename a file or folder within one granted folder, or a file within /out. Nothing is overwritten.",
		fields: []field{pathField, {name: "to", kind: "string", about: "New absolute path, with the name"}},
		check:  checkMove, sentence: sentenceMove, run: runMove,
	},
	{
		name: "delete_file", class: OnceOnly,
		about:  "Delete a file or an empty folder for good.",
		fields: []field{pathField},
		check:  checkFile, sentence: sentenceDelete, run: runDelete,
	},
}

func toolNamed(name string) *tool {
	for i := range fileTools {
		if fileTools[i].name == name {
			return &fileTools[i]
		}
	}
	return nil
}

// schema is the JSON Schema that parse enforces, properties in the order of the table.
func (t *tool) schema() json.RawMessage {
	var props, required []string
	for _, f := range t.fields {
		extra := ""
		if f.kind == "integer" {
			extra = `,"minimum":1`
		}
		props = append(props, fmt.Sprintf(`%q:{"type":%q,"description":%q%s}`, f.name, f.kind, f.about, extra))
		if !f.optional {
			required = append(required, fmt.Sprintf("%q", f.name))
		}
	}
	return json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{%s},"required":[%s],"additionalProperties":false}`,
		strings.Join(props, ","), strings.Join(required, ",")))
}

const (
	maxContent = 16 << 20 // bytes a call may write
	maxQuery   = 1000     // bytes of a query
)

// checkFile wants a path that can name a file.
func checkFile(j *job) error { return j.path.isFile() }

func checkRead(j *job) error {
	from, hasFrom := j.args.num["from"]
	to, hasTo := j.args.num["to"]
	if hasFrom && hasTo && to < from {
		return fmt.Errorf("to (%d) is before from (%d)", to, from)
	}
	return j.path.isFile()
}

func checkSearch(j *job) error {
	q := j.args.text["query"]
	if strings.TrimSpace(q) == "" {
		return errors.New("query is empty")
	}
	if len(q) > maxQuery || strings.ContainsAny(q, "\r\n\x00") {
		return fmt.Errorf("query must be one line of at most %d bytes", maxQuery)
	}
	return nil
}

func checkWrite(j *job) error { return errors.Join(j.path.isFile(), checkSize(j.args.text["content"])) }

func checkEdit(j *job) error {
	switch from, to := j.args.text["old"], j.args.text["new"]; {
	case from == "":
		return errors.New("old is empty: give the text to replace")
	case from == to:
		return errors.New("old and new are the same")
	default:
		return errors.Join(j.path.isFile(), checkSize(to))
	}
}

func checkMove(j *job) error {
	if err := errors.Join(j.path.isFile(), j.to.isFile()); err != nil {
		return err
	}
	if j.path.place != j.to.place || j.path.grant.ID != j.to.grant.ID {
		return errors.New("a move stays within one folder of /local or within /out; to bring a text file to another place, read it with read_file and write it there with write_file")
	}
	if j.path.rel == j.to.rel {
		return errors.New("path and to are the same")
	}
	if strings.HasPrefix(j.to.rel, j.path.rel+"/") {
		return errors.New("a folder cannot be moved into itself")
	}
	return nil
}

func checkSize(content string) error {
	if len(content) > maxContent {
		return fmt.Errorf("%s bytes are too many for one file; at most %s", comma(int64(len(content))), comma(maxContent))
	}
	return nil
}
