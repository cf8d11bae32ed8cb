package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// What a running demo can be told.
const (
	orderEnqueue = "enqueue"
	orderBreak   = "break"
	orderHeal    = "heal"
	orderPause   = "pause"
	orderResume  = "resume"

	withHang = "hang"
)

const (
	// demoHookDefault is the hook meant when none is named.
	demoHookDefault = "healthy"
	// enqueueMost is more than a demo works off in a quarter of an hour.
	enqueueMost = 100000
	// orderWithin bounds an order: the longest one writes enqueueMost rows.
	orderWithin = 2 * time.Minute
)

// demoCommand builds `waybill dev demo`, which talks to the demo that runs in
// this folder.
func demoCommand(p process) *cobra.Command {
	demo := &cobra.Command{
		Use:   "demo",
		Short: "Drive the running demo from another terminal",
		Long: `Tells the demo that runs in this folder what to do next. The hooks are healthy,
slow, failing and hanging; healthy is meant where none is named.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	demo.AddCommand(enqueueCommand(p), breakCommand(p),
		orderCommand(p, orderHeal, "Let a hook's receiver answer 200 again"),
		pauseCommand(p), orderCommand(p, orderResume, "Let a paused hook continue"))
	return demo
}

func enqueueCommand(p process) *cobra.Command {
	return &cobra.Command{
		Use:     "enqueue [N] [HOOK]",
		Short:   "Queue N calls to a hook, one if no number is given",
		Example: "  waybill dev demo enqueue\n  waybill dev demo enqueue 500\n  waybill dev demo enqueue 3 slow",
		Args:    cobra.MaximumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			n := 1
			if len(args) > 0 && strings.Trim(args[0], "+-0123456789") == "" {
				var err error
				if n, err = strconv.Atoi(args[0]); err != nil || n < 1 || n > enqueueMost {
					return fmt.Errorf("%s calls cannot be queued; 1 to %d can", args[0], enqueueMost)
				}
				args = args[1:]
			}
			if len(args) > 1 {
				return fmt.Errorf("the number comes first: enqueue %s %s", args[1], args[0])
			}
			return giveOrder(c, p, orderEnqueue, args, url.Values{"n": {strconv.Itoa(n)}})
		},
	}
}

func breakCommand(p process) *cobra.Command {
	var with string
	command := &cobra.Command{
		Use:   "break [HOOK]",
		Short: "Let a hook's receiver fail",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			status, err := strconv.Atoi(with)
			if with != withHang && (err != nil || status < 300 || status > 599) {
				return fmt.Errorf("--with %s: neither %s nor a status from 300 to 599", with, withHang)
			}
			return giveOrder(c, p, orderBreak, args, url.Values{"with": {with}})
		},
	}
	command.Flags().StringVar(&with, "with", "503", "status to answer, or "+withHang+" for no answer at all")
	return command
}

func pauseCommand(p process) *cobra.Command {
	var by, reason string
	command := &cobra.Command{
		Use:   "pause [HOOK]",
		Short: "Stop new attempts to a hook",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return giveOrder(c, p, orderPause, args, url.Values{"by": {by}, "reason": {reason}})
		},
	}
	command.Flags().StringVar(&by, "by", p.getenv("USER"), "who asks")
	command.Flags().StringVar(&reason, "reason", "", "why, for those who find the hook paused")
	return command
}

func orderCommand(p process, name, short string) *cobra.Command {
	return &cobra.Command{
		Use: name + " [HOOK]", Short: short, Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return giveOrder(c, p, name, args, nil) },
	}
}

// giveOrder tells the running demo and shows its answer.
func giveOrder(c *cobra.Command, p process, name string, args []string, values url.Values) error {
	hook := demoHookDefault
	if len(args) > 0 {
		hook = args[0]
	}
	said, err := tell(c.Context(), name, hook, values)
	if err != nil {
		return failed(err)
	}
	say(p.stdout, "%s", strings.TrimSpace(said))
	return nil
}

// errNoDemo is what somebody reads who is in the wrong folder, too.
var errNoDemo = errors.New("no demo runs in this folder; start one with `make run` in another terminal, and give orders from the same folder")

// tell sends one order and returns the answer's text.
func tell(ctx context.Context, name, hook string, values url.Values) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, orderWithin)
	defer cancel()
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", controlPath())
		},
	}}
	// The host is not looked at: the socket leads to one place only.
	target := url.URL{Scheme: "http", Host: "demo", Path: "/" + name + "/" + hook, RawQuery: values.Encode()}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), nil)
	if err != nil {
		return "", err
	}
	answer, err := client.Do(request)
	switch {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return "", errNoDemo
	case errors.Is(err, os.ErrPermission):
		return "", errors.New("the demo in this folder belongs to another user; only that user may drive it")
	case err != nil:
		return "", fmt.Errorf("the demo does not answer: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	said, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = errors.New(strings.TrimSpace(string(said)))
	}
	return string(said), err
}
