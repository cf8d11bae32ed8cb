package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/spf13/cobra"
)

// hookChange is an operator's wish to pause, release or resume hooks.
type hookChange struct {
	phids      []string // empty with all
	all        bool
	by, reason string // kept with the pause and shown to others
}

// hooksCommand builds `waybill hooks` with the subcommands that have work;
// nil when none has.
func hooksCommand(p process, w hookWork) *cobra.Command {
	if w.list == nil && w.show == nil && w.pause == nil && w.release == nil && w.resume == nil {
		return nil
	}
	hooks := &cobra.Command{
		Use:   "hooks",
		Short: "Show, pause, release and resume webhooks",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	if w.list != nil {
		hooks.AddCommand(hooksListCommand(p, w.list))
	}
	if w.show != nil {
		hooks.AddCommand(hooksShowCommand(p, w.show))
	}
	if w.pause != nil {
		hooks.AddCommand(changeCommand(p, "pause", "Stop new attempts to hooks, cluster-wide", w.pause))
	}
	if w.release != nil {
		release := changeCommand(p, "release", "Give hooks back to Phorge, whose own worker delivers again", w.release)
		release.Long = releaseHelp
		hooks.AddCommand(release)
	}
	if w.resume != nil {
		hooks.AddCommand(changeCommand(p, "resume", "Let paused hooks continue, take released ones back", w.resume))
	}
	return hooks
}

func hooksListCommand(p process, do func(context.Context, job, bool) error) *cobra.Command {
	var asJSON bool
	command := &cobra.Command{
		Use:   "list",
		Short: "Show every hook: state, queue, last result, breaker, owner",
		Long:  hooksListHelp,
		Args:  cobra.NoArgs,
	}
	jsonFlag(command, &asJSON)
	command.RunE = doing(p, func(ctx context.Context, j job) error { return do(ctx, j, asJSON) })
	return command
}

const hooksListHelp = `Show every hook: state, queue, last result, breaker, owner.

  delivering  a process of Waybill owns the hook and sends
  paused      nobody sends; who said so and why is shown
  released    Phorge's own worker sends
  disabled    switched off in Phorge: what is queued is written as failed
  breaker     too many failures lately; nothing is sent until the window slides
  unowned     no process of Waybill owns the hook: is one running?
  waiting     its last owner crashed or was cut off, and may still be calling:
              nothing is sent until that must be over
  gone        rows wait for a hook that Phorge does not have any more

On a terminal the list is made to fit, elsewhere it is whole. The counts read
the request table once from end to end.`

func hooksShowCommand(p process, do func(context.Context, job, string, bool) error) *cobra.Command {
	var asJSON bool
	command := &cobra.Command{
		Use:               "show PHID",
		Short:             "Show one hook",
		Args:              oneHook,
		ValidArgsFunction: completeHooks(p),
	}
	jsonFlag(command, &asJSON)
	command.RunE = func(c *cobra.Command, args []string) error {
		return doing(p, func(ctx context.Context, j job) error { return do(ctx, j, args[0], asJSON) })(c, args)
	}
	return command
}

func oneHook(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return errors.New("name one hook")
	}
	return isHook(args[0])
}

// jsonFlag is the same for every command that shows something.
func jsonFlag(c *cobra.Command, asJSON *bool) {
	c.Flags().BoolVar(asJSON, "json", false, "for programs: the fields of docs/commands.md")
}

// releaseHelp says what a release costs, before it is made.
const releaseHelp = `Give hooks back to Phorge, whose own worker delivers again.

Waybill begins no new attempt. Those under way end and are written; each hook's
lock is kept for 5 seconds after its last write and is free then. Until then
neither delivers. Phorge looks every 15 seconds or so, so a row that waits is
called 15 to 20 seconds later, in Phorge's rhythm, with Phorge's own rules for
redirects, names and retries. A row of which Waybill cannot know whether it
arrived is called again by Phorge.

A release holds through restarts and for every process. A pause replaces it, and
it replaces a pause. What is said of one hook goes before what is said of --all.
The way back is "waybill hooks resume".`

func changeCommand(p process, verb, short string, do func(context.Context, job, hookChange) error) *cobra.Command {
	var change hookChange
	command := &cobra.Command{
		Use:   verb + " PHID... | --all",
		Short: short,

		ValidArgsFunction: completeHooks(p),
		Args: func(_ *cobra.Command, args []string) error {
			change.phids = args
			return change.check()
		},
	}
	command.Flags().BoolVar(&change.all, "all", false, "every hook, also those created later")
	command.Flags().StringVar(&change.by, "by", p.getenv("USER"), "who asks")
	command.Flags().StringVar(&change.reason, "reason", "", "why, for those who find the hook like this")
	command.RunE = func(c *cobra.Command, args []string) error {
		return doing(p, func(ctx context.Context, j job) error { return do(ctx, j, change) })(c, args)
	}
	return command
}

// hookShape is every PHID that Phorge makes for a Herald webhook
// (PhabricatorPHID::generateNewPHID).
var hookShape = regexp.MustCompile(`^PHID-HWBH-[a-z0-9]{20}$`)

// check refuses what cannot be meant. A mistyped PHID would otherwise pause a
// hook that does not exist and leave the real one running.
func (c hookChange) check() error {
	switch {
	case c.all && len(c.phids) > 0:
		return errors.New("name hooks or use --all, not both")
	case !c.all && len(c.phids) == 0:
		return errors.New("name at least one hook, or use --all")
	}
	for _, phid := range c.phids {
		if err := isHook(phid); err != nil {
			return err
		}
	}
	return nil
}

func isHook(phid string) error {
	if !hookShape.MatchString(phid) {
		return fmt.Errorf("%q is not a hook's PHID; one is PHID-HWBH- and 20 small letters or digits, as in "+
			"PHID-HWBH-4c734vhzpcdaadwnlu73", phid)
	}
	return nil
}
