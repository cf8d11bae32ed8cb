package main

import (
	"context"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"waybill/internal/columns"
	"waybill/internal/config"
)

// Bounds of completion: somebody has pressed a key and waits. Beyond some
// hundreds a list of hooks helps nobody.
const (
	completeWithin = time.Second
	completedHooks = 300
	completedRows  = 50
	completedName  = 40 // columns of a hook's name beside its PHID
)

// completionCommand builds `waybill completion`, in place of cobra's own.
func completionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish",
		Short: "Print a completion script for a shell",
		Long: `Print a completion script for a shell.

  bash   source <(waybill completion bash)
  zsh    autoload -U compinit && compinit; source <(waybill completion zsh)
  fish   waybill completion fish | source

Put the line into the shell's start file to have it always; in zsh without its
first half, if compinit is called there already. PHIDs of hooks and
of the newest requests are completed too where the database of
WAYBILL_HERALD_DSN answers within a second.`,
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{"bash", "zsh", "fish"},
		RunE:      func(c *cobra.Command, args []string) error { return failed(printCompletion(c.Root(), args[0])) },
	}
}

func printCompletion(root *cobra.Command, shell string) error {
	out := root.OutOrStdout()
	switch shell {
	case "zsh":
		return root.GenZshCompletion(out)
	case "fish":
		return root.GenFishCompletion(out, true)
	}
	if err := root.GenBashCompletionV2(out, true); err != nil {
		return err
	}
	_, err := out.Write([]byte(bashAlone))
	return err
}

// bashAlone lets the script do without the package bash-completion, whose
// functions cobra's script takes for granted.
const bashAlone = `
__waybill_init_completion()
{
    COMPREPLY=()
    if declare -F _get_comp_words_by_ref >/dev/null 2>&1; then
        _get_comp_words_by_ref "$@" cur prev words cword
        return
    fi
    words=("${COMP_WORDS[@]}")
    cword=$COMP_CWORD
    cur=${words[cword]}
    prev=${words[cword > 0 ? cword - 1 : 0]}
}
`

// phidShape is what may go to a shell: a database's texts are somebody else's.
var phidShape = regexp.MustCompile(`^PHID-[A-Z]{4}-[A-Za-z0-9]{1,40}$`)

// completeHooks offers hooks with their names.
func completeHooks(p process) cobra.CompletionFunc {
	return completing(p, func(ctx context.Context, t *tables) (found []string) {
		hooks, _ := t.rows.Hooks(ctx)
		for _, h := range hooks[:min(len(hooks), completedHooks)] {
			if phidShape.MatchString(h.PHID) {
				found = append(found, cobra.CompletionWithDesc(h.PHID, columns.Cut(columns.Plain(h.Name), completedName)))
			}
		}
		return found
	})
}

// completeRequests offers the newest requests.
func completeRequests(p process) cobra.CompletionFunc {
	return completing(p, func(ctx context.Context, t *tables) (found []string) {
		recent, _ := t.rows.Recent(ctx, completedRows)
		for _, phid := range recent {
			if phidShape.MatchString(phid) {
				found = append(found, phid)
			}
		}
		return found
	})
}

// completing asks the database for a moment. Whatever goes wrong, a press of a
// key says nothing and offers nothing.
func completing(p process, ask func(context.Context, *tables) []string) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		settings, err := config.Load(p.getenv)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		t, err := openTables(job{process: p, config: settings})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer t.close()
		ctx, cancel := context.WithTimeout(c.Context(), completeWithin)
		defer cancel()
		return ask(ctx, t), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}
