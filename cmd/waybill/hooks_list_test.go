package main

import (
	"strings"
	"testing"

	"waybill/internal/herald"
	"waybill/internal/ledger"
)

// Who meets a state in the list finds it in the list's help.
func TestEveryStateOfAHookIsInTheHelp(t *testing.T) {
	for _, state := range []string{
		hookGone, hookReleased, hookPaused, hookDisabled, hookBreaker, hookUnowned, hookWaiting, hookDelivering,
	} {
		if !strings.Contains(hooksListHelp, "\n  "+state+"  ") {
			t.Errorf("%s is not explained", state)
		}
	}
}

// How a hook stands is said the same way everywhere, and no colon waits for a
// reason that nobody gave.
func TestAPauseIsSaidInALine(t *testing.T) {
	for want, p := range map[string]herald.Pause{
		"paused by jane":                               {HookPHID: "h", By: "jane"},
		"paused by jane: lunch":                        {HookPHID: "h", By: "jane", Reason: "lunch"},
		"released to Phorge by jane":                   {HookPHID: "h", By: "jane", Released: true},
		"released to Phorge by jane: test (all hooks)": {HookPHID: ledger.AllHooks, By: "jane", Reason: "test", Released: true},
	} {
		if got := viewPause(&p).said(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if viewPause(nil) != nil {
		t.Error("a hook without an order has one")
	}
}
