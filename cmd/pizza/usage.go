package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// helpful makes every complaint about a command line end with what to type instead.
func helpful(cmd *cobra.Command) {
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; `%s --help` tells more", err, cmd.CommandPath())
	})
	if cmd.HasSubCommands() {
		group(cmd)
	} else if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if check(cmd, args) == nil {
				return nil
			}
			want := "want `" + strings.TrimSuffix(cmd.UseLine(), " [flags]") + "`"
			if len(args) > 1 && strings.Contains(cmd.Use, "TEXT") {
				want += ", with quotes around a text of several words"
			}
			return fmt.Errorf("%s; `%s --help` tells more", want, cmd.CommandPath())
		}
	}
	for _, sub := range cmd.Commands() {
		helpful(sub)
	}
}

// group is a command that has others: alone it does what it does itself, or prints its help.
func group(cmd *cobra.Command) {
	cmd.Args = cobra.ArbitraryArgs // without it cobra words the error
	alone := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 && alone != nil {
			return alone(cmd, args)
		}
		if len(args) == 0 {
			return cmd.Help()
		}
		wrong := fmt.Sprintf("there is no command `%s %s`", cmd.CommandPath(), args[0])
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			return fmt.Errorf("%s; did you mean `%s %s`?", wrong, cmd.CommandPath(), near[0])
		}
		return fmt.Errorf("%s; `%s --help` lists them", wrong, cmd.CommandPath())
	}
}
