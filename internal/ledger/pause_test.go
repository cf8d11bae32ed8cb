package ledger_test

import (
	"strings"
	"testing"
	"time"

	"waybill/internal/devstack/stacktest"
	"waybill/internal/herald"
	"waybill/internal/ledger"
)

func TestFirstPauseStands(t *testing.T) {
	l, _ := migrated(t)
	first := herald.Pause{HookPHID: "h", At: moment(), By: "älva 🎉", Reason: "it's \\ broken\x00\n"}
	must(t, l.SetPause(t.Context(), first))
	must(t, l.SetPause(t.Context(), herald.Pause{HookPHID: "h", At: moment().Add(1), By: "second", Reason: "too"}))
	p, err := l.Paused(t.Context(), "h")
	must(t, err)
	if p == nil || *p != first {
		t.Errorf("paused by %+v, want %+v", p, first)
	}
	second := first
	second.At = second.At.Add(time.Millisecond)
	must(t, l.EndPause(t.Context(), second))
	if p, err := l.Paused(t.Context(), "h"); p == nil || err != nil {
		t.Errorf("the end of another pause: %v, %v", p, err)
	}
	for _, want := range []bool{true, false} {
		if ended, err := l.ClearPause(t.Context(), "h"); ended != want || err != nil {
			t.Errorf("ended %v, %v, want %v", ended, err, want)
		}
	}
	if p, err := l.Paused(t.Context(), "h"); p != nil || err != nil {
		t.Errorf("after resume: %v, %v", p, err)
	}
	again := herald.Pause{HookPHID: "h", At: moment(), By: "third"}
	must(t, l.SetPause(t.Context(), again))
	p, err = l.Paused(t.Context(), "h")
	if err != nil || p == nil || *p != again {
		t.Fatalf("paused again: %v, %v", p, err)
	}
	must(t, l.EndPause(t.Context(), *p))
	if p, err := l.Paused(t.Context(), "h"); p != nil || err != nil {
		t.Errorf("ended as it was read: %v, %v", p, err)
	}
}

// A pause and a release replace each other; the first of two equal ones stands;
// one resume ends both.
func TestPauseAndReleaseReplaceEachOther(t *testing.T) {
	l, _ := migrated(t)
	order := func(by string, released bool) herald.Pause {
		return herald.Pause{HookPHID: "h", At: moment().Add(time.Duration(len(by)) * time.Second), By: by, Reason: by, Released: released}
	}
	stands := func(want herald.Pause) {
		t.Helper()
		if p, err := l.Paused(t.Context(), "h"); err != nil || p == nil || *p != want {
			t.Errorf("stands %+v, %v, want %+v", p, err, want)
		}
	}
	for _, step := range []struct {
		order, stands herald.Pause
	}{
		{order("a", true), order("a", true)},
		{order("again", true), order("a", true)},
		{order("halt", false), order("halt", false)},
		{order("repeated", false), order("halt", false)},
		{order("back", true), order("back", true)},
	} {
		must(t, l.SetPause(t.Context(), step.order))
		stands(step.stands)
	}
	clearPause(t, l, "h")
	if p, err := l.Paused(t.Context(), "h"); p != nil || err != nil {
		t.Errorf("after resume: %v, %v", p, err)
	}
}

// What is said about one hook goes before what is said about all.
func TestWhichHooksAreReleased(t *testing.T) {
	l, _ := migrated(t)
	for _, tt := range []struct {
		name string
		set  map[string]bool // hook -> released
		want map[string]bool
	}{
		{"nothing", nil, map[string]bool{"a": false}},
		{"one", map[string]bool{"a": true}, map[string]bool{"a": true, "b": false}},
		{"all", map[string]bool{"*": true}, map[string]bool{"a": true, "b": true}},
		{"all but a paused one", map[string]bool{"*": true, "a": false}, map[string]bool{"a": false, "b": true}},
		{"one while all are paused", map[string]bool{"*": false, "a": true}, map[string]bool{"a": true, "b": false}},
	} {
		for hook, released := range tt.set {
			must(t, l.SetPause(t.Context(), herald.Pause{HookPHID: hook, At: moment(), Released: released}))
		}
		is, err := l.ReleasedHooks(t.Context())
		must(t, err)
		for hook, want := range tt.want {
			if is(hook) != want {
				t.Errorf("%s: %s is released: %v", tt.name, hook, is(hook))
			}
		}
		for hook := range tt.set {
			clearPause(t, l, hook)
		}
	}
}

func TestPauseOfAllHooks(t *testing.T) {
	l, _ := migrated(t)
	all := herald.Pause{HookPHID: ledger.AllHooks, At: moment(), By: "op", Reason: "upgrade"}
	own := herald.Pause{HookPHID: "PHID-HWBH-own", At: moment(), By: "other", Reason: "broken"}
	must(t, l.SetPause(t.Context(), all))
	must(t, l.SetPause(t.Context(), own))
	for hook, want := range map[string]herald.Pause{
		"PHID-HWBH-own": own, // its own reason says more
		"PHID-HWBH-new": all, // also of hooks that nobody knew then
		"PHID-HWBH-ow":  all, "PHID-HWBH-OWN": all,
	} {
		if p, err := l.Paused(t.Context(), hook); err != nil || p == nil || *p != want {
			t.Errorf("%s is paused by %v (%v), want %v", hook, p, err, want)
		}
	}
	if list, err := l.Pauses(t.Context()); err != nil || len(list) != 2 {
		t.Errorf("pauses %v, %v", list, err)
	}
	clearPause(t, l, ledger.AllHooks)
	if p, err := l.Paused(t.Context(), "PHID-HWBH-own"); err != nil || p == nil || *p != own {
		t.Errorf("its own pause outlives that of all: %v, %v", p, err)
	}
	if p, err := l.Paused(t.Context(), "PHID-HWBH-new"); p != nil || err != nil {
		t.Errorf("others run again: %v, %v", p, err)
	}
}

// An operator's words are cut where the column ends, not refused.
func TestOverlongWordsAreCut(t *testing.T) {
	l, _ := migrated(t)
	for _, tt := range []struct{ name, text, by, reason string }{
		{"ascii", strings.Repeat("x", 5000), strings.Repeat("x", 128), strings.Repeat("x", 1024)},
		{"wide", strings.Repeat("🎉", 5000), strings.Repeat("🎉", 128), strings.Repeat("🎉", 1024)},
		{"exact", strings.Repeat("ü", 1024), strings.Repeat("ü", 128), strings.Repeat("ü", 1024)},
		{"not UTF-8", "a\xff\xfeb", "a\uFFFDb", "a\uFFFDb"},
		{"empty", "", "", ""},
	} {
		must(t, l.SetPause(t.Context(), herald.Pause{HookPHID: tt.name, At: moment(), By: tt.text, Reason: tt.text}))
		p, err := l.Paused(t.Context(), tt.name)
		must(t, err)
		if p.By != tt.by || p.Reason != tt.reason {
			t.Errorf("%s: by %d bytes, want %d; reason %d, want %d", tt.name, len(p.By), len(tt.by), len(p.Reason), len(tt.reason))
		}
	}
}

// Whatever an operator's DSN asks for, a pause is written at once, for everyone
// to see, and comes back as it was said.
func TestForeignSettingsChangeNothing(t *testing.T) {
	n := name(t)
	m := stacktest.MariaDB(t)
	other := open(t, m.DSN(n))
	_, err := other.Migrate(t.Context())
	must(t, err)
	for _, params := range []string{
		"autocommit=0", "charset=latin1", "sql_mode='NO_BACKSLASH_ESCAPES'", "sql_mode=''", "parseTime=false",
		"loc=Asia%2FTokyo&time_zone=%27%2B09%3A00%27", "interpolateParams=false", "clientFoundRows=true",
	} {
		l := open(t, m.DSN(n)+"?"+params)
		p := herald.Pause{HookPHID: params, At: moment(), By: "ünï 🎉", Reason: `\ ' " ; --`}
		must(t, l.SetPause(t.Context(), p))
		for who, from := range map[string]*ledger.Ledger{"the writer": l, "another process": other} {
			if got, err := from.Paused(t.Context(), params); err != nil || got == nil || *got != p {
				t.Errorf("%s: %s sees %+v, %v", params, who, got, err)
			}
		}
		if steps, err := l.Migrate(t.Context()); steps != 0 || err != nil {
			t.Errorf("%s: migrated %d steps, %v", params, steps, err)
		}
		clearPause(t, l, params)
		if got, err := other.Paused(t.Context(), params); got != nil || err != nil {
			t.Errorf("%s: after resume another process sees %v, %v", params, got, err)
		}
	}
}
