package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"pizza/agent"
)

func newUsage(g *globals) *cobra.Command {
	var day, month, asJSON bool
	var task string
	cmd := &cobra.Command{
		Use: "usage [DATE]", Short: "tell what was spent: tokens and money, by model", Args: cobra.MaximumNArgs(1),
		Long: "Tell what tasks spent, by model. Without a flag: today and this month. DATE is a day (2026-12-01)\n" +
			"or a month (2026-12). Money is shown as far as the providers say what a call costs.",
		RunE: func(cmd *cobra.Command, args []string) error {
			when, err := usageOf(day, month, task, args)
			if err != nil {
				return err
			}
			return g.with(cmd, func(s service) error {
				var list []agent.Usage
				for _, w := range when {
					u, err := s.Usage(cmd.Context(), g.account, w)
					if err != nil {
						return err
					}
					list = append(list, u)
				}
				if asJSON {
					return printJSON(cmd.OutOrStdout(), list)
				}
				return printUsage(cmd.OutOrStdout(), list)
			})
		},
	}
	cmd.Flags().BoolVar(&day, "day", false, "of today, or of the day DATE")
	cmd.Flags().BoolVar(&month, "month", false, "of this month, or of the month DATE")
	cmd.Flags().StringVar(&task, "task", "", "of the task with this id, with its workers")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON list: money in millionths of a dollar")
	cmd.MarkFlagsMutuallyExclusive("day", "month", "task")
	return cmd
}

// usageOf says what the command asks for.
func usageOf(day, month bool, task string, args []string) ([]string, error) {
	switch {
	case task != "" && len(args) > 0:
		return nil, errors.New("--task takes no DATE")
	case task != "":
		return []string{task}, nil
	case len(args) == 0 && day:
		return []string{"day"}, nil
	case len(args) == 0 && month:
		return []string{"month"}, nil
	case len(args) == 0:
		return []string{"day", "month"}, nil
	case len(args[0]) == len("2026-12-01") && month:
		return []string{args[0][:len("2026-12")]}, nil
	case len(args[0]) == len("2026-12") && day:
		return nil, fmt.Errorf("%s is a month: --day wants a day, as in %s-01", args[0], args[0])
	}
	return args, nil
}

func printUsage(w io.Writer, list []agent.Usage) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for i, u := range list {
		if i > 0 {
			fmt.Fprintln(tw)
		}
		fmt.Fprintf(tw, "%s\tcalls\tinput\tcached\toutput\tcost\t\n", u.Of)
		rows := u.Models
		if len(rows) != 1 {
			rows = append(rows, u.Total)
		}
		for _, m := range rows {
			name := visible(m.Model)
			if name == "" {
				name = "all"
			}
			fmt.Fprintf(tw, "%s\t%d\t%d\t%d\t%d\t%s\t\n", name, m.Calls, m.Input, m.Cached, m.Output, usd(m.MicroUSD))
		}
		if err := tw.Flush(); err != nil {
			return err
		}
		if err := printCap(w, u); err != nil {
			return err
		}
	}
	return nil
}

// printCap tells how far a month is from its cap.
func printCap(w io.Writer, u agent.Usage) error {
	if n := u.CapMicroUSD; n > 0 {
		if _, err := fmt.Fprintf(w, "the limit of the month is %s; %s is left\n", usd(n), usd(max(0, n-u.Total.MicroUSD-u.ReservedMicroUSD))); err != nil {
			return err
		}
	}
	if n := u.CapTokens; n > 0 {
		left := max(0, n-u.Total.Input-u.Total.Output-u.ReservedTokens)
		if _, err := fmt.Fprintf(w, "the limit of the month is %d tokens; %d are left\n", n, left); err != nil {
			return err
		}
	}
	return nil
}

// usd shows millionths of a dollar: cents, or more where there is less; - for nothing.
func usd(n int64) string {
	switch {
	case n == 0:
		return "-"
	case n < 10_000:
		return "$" + strconv.FormatFloat(float64(n)/1e6, 'f', 6, 64)
	}
	return fmt.Sprintf("$%.2f", float64(n)/1e6)
}
