package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"waybill/internal/heralddb"
)

// requestPrefix begins the PHID of every row of Phorge's webhook queue.
const requestPrefix = "PHID-HWBR-"

// Sizes of lists. What is shown by default fits a screen or two; what is
// retried at once would be a flood beyond that.
const (
	listedByDefault = 50
	listedAtMost    = 10_000
	retriedAtMost   = 1000
)

// requestsCommand builds `waybill requests` with the subcommands that have
// work; nil when none has.
func requestsCommand(p process, w requestWork) *cobra.Command {
	if w.list == nil && w.show == nil && w.retry == nil {
		return nil
	}
	requests := &cobra.Command{
		Use:   "requests",
		Short: "List, show and retry rows of Phorge's webhook queue",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	if w.list != nil {
		requests.AddCommand(requestsListCommand(p, w.list))
	}
	if w.show != nil {
		requests.AddCommand(requestsShowCommand(p, w.show))
	}
	if w.retry != nil {
		requests.AddCommand(retryCommand(p, w.retry))
	}
	return requests
}

// listing says which rows a list shows.
type listing struct {
	hook   string
	states []string
	limit  int
	asJSON bool
}

func requestsListCommand(p process, do func(context.Context, job, listing) error) *cobra.Command {
	var l listing
	command := &cobra.Command{
		Use:   "list",
		Short: "List requests, the newest first",
		Long: `List requests, the newest first.

  queued   never tried
  claimed  under a claim whose lease is not over: being sent, or its sender died
  resting  failed, and its backoff is not over
  due      failed, and may be tried again
  sent     delivered
  failed   over without a delivery
  unknown  its status or result is none that Phorge writes

Phorge's table has no key on the status: a rare state is looked for through the
whole table, with --hook through that hook's rows.`,
		Args: cobra.NoArgs,
	}
	flags := command.Flags()
	flags.StringVar(&l.hook, "hook", "", "only requests of the hook with this PHID")
	flags.StringSliceVar(&l.states, "state", nil, "only requests in these states, separated by commas")
	flags.IntVar(&l.limit, "limit", listedByDefault, fmt.Sprintf("how many at most, up to %d", listedAtMost))
	jsonFlag(command, &l.asJSON)
	_ = command.RegisterFlagCompletionFunc("hook", completeHooks(p))
	_ = command.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(stateNames(), cobra.ShellCompDirectiveNoFileComp))
	command.PreRunE = func(*cobra.Command, []string) error { return l.check() }
	command.RunE = doing(p, func(ctx context.Context, j job) error { return do(ctx, j, l) })
	return command
}

func stateNames() (names []string) {
	for _, s := range heralddb.States() {
		names = append(names, string(s))
	}
	return names
}

func (l listing) check() error {
	for _, s := range l.states {
		if !slices.Contains(stateNames(), s) {
			return errors.New("--state takes " + strings.Join(stateNames(), ", "))
		}
	}
	if l.limit < 1 || l.limit > listedAtMost {
		return fmt.Errorf("--limit takes 1 to %d", listedAtMost)
	}
	if l.hook != "" {
		return isHook(l.hook)
	}
	return nil
}

func requestsShowCommand(p process, do func(context.Context, job, string, bool) error) *cobra.Command {
	var asJSON bool
	command := &cobra.Command{
		Use:   "show PHID|ID",
		Short: "Show one request: its row, what happens next, its workflow's runs",
		Long: `Show one request: its row, what happens next, its workflow's runs.

While Temporal is away the row is shown all the same, and that it is away. Keys,
addresses and properties that Phorge does not write are not shown.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("name one request")
			}
			return isRequest(args[0])
		},
		ValidArgsFunction: completeRequests(p),
	}
	jsonFlag(command, &asJSON)
	command.RunE = func(c *cobra.Command, args []string) error {
		return doing(p, func(ctx context.Context, j job) error { return do(ctx, j, args[0], asJSON) })(c, args)
	}
	return command
}

// isRequest accepts what Phorge's pages and Waybill's lists call a request.
func isRequest(name string) error {
	if _, ok := requestID(name); ok || strings.HasPrefix(name, requestPrefix) {
		return nil
	}
	return errors.New("a request is named by its PHID, which begins with " + requestPrefix + ", or by its number")
}

func requestID(name string) (uint64, bool) {
	id, err := strconv.ParseUint(name, 10, 32) // the column is int unsigned
	return id, err == nil
}

// retryWish says which requests are to be tried at once.
type retryWish struct {
	requests []string
	hook     string
	asJSON   bool
}

func retryCommand(p process, do func(context.Context, job, retryWish) error) *cobra.Command {
	var w retryWish
	command := &cobra.Command{
		Use:   "retry-now PHID|ID... | --hook PHID",
		Short: "Try requests that rest after a failure at once",
		Long: `Try requests that rest after a failure at once.

The request's open workflow is told to end its rest. That skips the backoff and
nothing else: a paused hook, an open breaker or another's claim still hold. A
request that is sent or failed is over; it is not put back into the queue. One
that has not failed yet has no rest to end. With --hook all resting requests of
that hook are told, ` + strconv.Itoa(retriedAtMost) + ` at most.

Exit code 1 when one of the requests named could not be told; each line says
why. With --hook only when something went wrong.`,
		ValidArgsFunction: completeRequests(p),
	}
	command.Args = func(_ *cobra.Command, args []string) error {
		w.requests = args
		return w.check()
	}
	command.Flags().StringVar(&w.hook, "hook", "", "all resting requests of the hook with this PHID")
	jsonFlag(command, &w.asJSON)
	_ = command.RegisterFlagCompletionFunc("hook", completeHooks(p))
	command.RunE = doing(p, func(ctx context.Context, j job) error { return do(ctx, j, w) })
	return command
}

func (w retryWish) check() error {
	switch {
	case w.hook != "" && len(w.requests) > 0:
		return errors.New("name requests or use --hook, not both")
	case w.hook != "":
		return isHook(w.hook)
	case len(w.requests) == 0:
		return errors.New("name at least one request, or use --hook")
	}
	for _, name := range w.requests {
		if err := isRequest(name); err != nil {
			return err
		}
	}
	return nil
}
