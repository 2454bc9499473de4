package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"pizza/agent"
)

func newEdit(g *globals) *cobra.Command {
	var from string
	cmd := &cobra.Command{
		Use: "edit ID", Short: "approve what `pizza action` lists with other arguments, in your editor", Args: cobra.ExactArgs(1),
		Long: "Open the arguments of an open approval as JSON in $VISUAL or $EDITOR, and approve them as they are\n" +
			"saved. Nothing changed decides nothing. When a path, a recipient, an amount or a command changed, you\n" +
			"are asked once more. --args takes the arguments from a file, or with - from standard input.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := wantID(args); err != nil {
				return err
			}
			return g.with(cmd, func(s service) error { return editApproval(cmd, g, s, args[0], from) })
		},
	}
	cmd.Flags().StringVar(&from, "args", "", "file with the arguments, a JSON object; - reads standard input")
	return cmd
}

func editApproval(cmd *cobra.Command, g *globals, s service, id, from string) error {
	d, err := openApproval(cmd, g, s, id)
	if err != nil {
		return err
	}
	final, kept, err := newArgs(cmd, d, from)
	if err != nil {
		return err
	}
	done, err := s.Decide(cmd.Context(), g.account, decision{ID: d.ID, Verb: "edit", Args: final})
	if err != nil && kept != "" {
		return fmt.Errorf("%s; your text is kept: pizza edit %s --args %s", userText(err), d.ID, kept)
	}
	if err != nil {
		return err
	}
	if kept != "" {
		err = os.Remove(kept)
	}
	return errors.Join(err, printDecided(cmd.OutOrStdout(), done))
}

// openApproval is the approval that id names, itself or as the only one of its task.
func openApproval(cmd *cobra.Command, g *globals, s service, id string) (agent.Decision, error) {
	shown, err := s.Show(cmd.Context(), g.account, id)
	if err != nil {
		return agent.Decision{}, err
	}
	var d agent.Decision
	switch {
	case shown.Decision != nil:
		d = *shown.Decision
	case len(shown.Open) == 1:
		d = shown.Open[0]
	default:
		return d, fmt.Errorf("%s has %s; `pizza show %s` lists them", visible(id), count(len(shown.Open), "open decision"), visible(id))
	}
	if d.Kind != "approval" {
		return d, fmt.Errorf("%s is no approval: there is nothing to edit", visible(id))
	}
	if d.State != agent.Open && d.State != agent.Deciding {
		return d, fmt.Errorf("%s is %s already", visible(id), d.State)
	}
	return d, nil
}

// newArgs reads the arguments; kept is the file of an editor, which stays until they are
// taken.
func newArgs(cmd *cobra.Command, d agent.Decision, from string) (final json.RawMessage, kept string, err error) {
	switch from {
	case "":
		return editArgs(cmd, d)
	case "-":
		final, err = io.ReadAll(cmd.InOrStdin())
	default:
		final, err = os.ReadFile(from)
	}
	if err == nil && !json.Valid(final) {
		err = errors.New("the arguments are no valid JSON; nothing was decided")
	}
	return final, "", err
}

// editArgs has the person edit the arguments in a file.
func editArgs(cmd *cobra.Command, d agent.Decision) (json.RawMessage, string, error) {
	editor := strings.Fields(firstEnv("VISUAL", "EDITOR"))
	if len(editor) == 0 {
		return nil, "", errors.New("no editor: set VISUAL or EDITOR, or give the arguments with --args FILE")
	}
	before, err := readable(d.Args, "  ")
	if err != nil {
		return nil, "", err
	}
	file, err := os.CreateTemp("", "pizza-edit-*.json") // 0600
	if err != nil {
		return nil, "", err
	}
	_, err = file.Write(before)
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, "", err
	}
	run := exec.CommandContext(cmd.Context(), editor[0], append(editor[1:], file.Name())...)
	run.Stdin, run.Stdout, run.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := run.Run(); err != nil {
		return nil, "", errors.Join(fmt.Errorf("the editor %s failed, and nothing was decided: %w", editor[0], err), os.Remove(file.Name()))
	}
	after, err := os.ReadFile(file.Name())
	switch {
	case err != nil:
		return nil, "", err
	case bytes.Equal(bytes.TrimSpace(after), bytes.TrimSpace(before)):
		return nil, "", errors.Join(fmt.Errorf("nothing was changed, and nothing was decided; `pizza approve %s` approves it as it is", d.ID), os.Remove(file.Name()))
	case !json.Valid(after):
		return nil, "", fmt.Errorf("this is no valid JSON, and nothing was decided; your text is kept: correct it and run pizza edit %s --args %s", d.ID, file.Name())
	}
	return after, file.Name(), nil
}

// readable writes JSON for a person: numbers as they are, and no character escaped that
// can be seen.
func readable(raw json.RawMessage, indent string) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	err := enc.Encode(v)
	return b.Bytes(), err
}

// readableLine is readable in one line.
func readableLine(raw json.RawMessage) string {
	b, err := readable(raw, "")
	if err != nil {
		b = raw
	}
	return visible(strings.TrimSpace(string(b)))
}

// printDecided tells what a decision came to.
func printDecided(w io.Writer, d agent.Decision) error {
	text := fmt.Sprintf("%s: %s\n", d.State, visible(d.Subject))
	if len(d.Again) > 0 {
		text += fmt.Sprintf("you are asked once more, because you changed %s: `pizza action` lists it\n", visible(strings.Join(d.Again, " and ")))
	} else if d.Edited != nil {
		text += readableLine(d.Edited) + "\n"
	}
	_, err := io.WriteString(w, text)
	return err
}
