package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"pizza/agent"
)

func newPolicies(g *globals) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "policies", Short: "list which tools are allowed, asked about or denied by rules of yours", Args: cobra.NoArgs,
		Long: "List the rules in force beside the tools' own: those of settings.json, and those that you made by\n" +
			"answering an approval with always. Of all that are about a call the strictest counts.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return g.with(cmd, func(s service) error {
				list, err := s.Policies(cmd.Context(), g.account)
				if err != nil {
					return err
				}
				if asJSON {
					return printJSON(cmd.OutOrStdout(), nonNil(list))
				}
				return printPolicies(cmd.OutOrStdout(), list)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.AddCommand(&cobra.Command{
		Use: "revoke ID", Short: "take back a rule that was made by always", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := wantID(args); err != nil {
				return err
			}
			return g.with(cmd, func(s service) error {
				if err := s.RevokePolicy(cmd.Context(), g.account, args[0]); err != nil {
					return err
				}
				_, err := fmt.Fprintln(cmd.OutOrStdout(), "revoked: you are asked again")
				return err
			})
		},
	})
	return cmd
}

// printPolicies prints rules for a person: the id, the rule, and where it is from.
func printPolicies(w io.Writer, list []agent.Policy) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, "no rules but the tools' own")
		return err
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, p := range list {
		from := "settings.json"
		if p.Task != "" {
			from = "task " + p.Task + " (" + visible(cmp.Or(p.Subject, "no subject")) + ")"
		}
		if p.By != nil {
			from += ", by " + visible(p.By.Login) + " on " + p.Created.Local().Format("2006-01-02 15:04")
		}
		switch {
		case p.Broken != "":
			from += "; CANNOT BE READ, its tools are off: " + visible(p.Broken)
		case p.Unmatched:
			from += "; there is no such tool now"
		}
		if _, err := fmt.Fprintf(tw, "%s\t%s\t%s\n", p.ID, visible(p.String()), from); err != nil {
			return err
		}
	}
	return tw.Flush()
}

// policyRoutes are the routes of the control socket about policies.
func policyRoutes(mux *http.ServeMux, s service) {
	mux.HandleFunc("GET /of/{account}/policies", func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, nil, func(ctx context.Context) (any, error) { return s.Policies(ctx, r.PathValue("account")) })
	})
	mux.HandleFunc("POST /of/{account}/policies/{id}/revoke", func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, nil, func(ctx context.Context) (any, error) {
			return struct{}{}, s.RevokePolicy(ctx, r.PathValue("account"), r.PathValue("id"))
		})
	})
}

func (c *controlClient) Policies(ctx context.Context, account string) (l []agent.Policy, err error) {
	err = c.call(ctx, "GET", accountPath(account, "policies"), nil, &l)
	return l, err
}

func (c *controlClient) RevokePolicy(ctx context.Context, account, id string) error {
	return c.call(ctx, "POST", accountPath(account, "policies", id, "revoke"), nil, &struct{}{})
}

// Policies lists the rules of policy that are in force for an account.
func (a *app) Policies(ctx context.Context, account string) ([]agent.Policy, error) {
	who, err := a.identity(ctx, account)
	if err != nil {
		return nil, err
	}
	return a.agent.Policies(ctx, who.Account)
}

// RevokePolicy takes back a rule that "always" made.
func (a *app) RevokePolicy(ctx context.Context, account, id string) error {
	who, err := a.identity(ctx, account)
	if err != nil {
		return err
	}
	return a.agent.RevokePolicy(ctx, who.Account, id)
}
