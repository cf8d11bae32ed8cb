package worker

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"waybill/internal/herald"
)

var errAway = errors.New("the database is away")

// silentSite is both ends of Silence: what the queue shows and what is held for it.
type silentSite struct {
	rows    []herald.Request
	unread  bool
	unheld  bool
	seen    map[version]bool
	paused  bool
	told    int // rows handed over in all
	pausing herald.Pause
}

func (s *silentSite) Silenced(context.Context) ([]herald.Request, error) {
	if s.unread {
		return nil, errAway
	}
	return s.rows, nil
}

func (s *silentSite) Hold(_ context.Context, rows []herald.Request, p herald.Pause) (bool, error) {
	if s.unheld {
		return false, errAway
	}
	fresh := false
	for _, r := range rows {
		v := version{r.PHID, r.Modified}
		fresh = fresh || !s.seen[v]
		s.seen[v] = true
		s.told++
	}
	held := fresh && !s.paused
	if held {
		s.paused, s.pausing = true, p
	}
	return held, nil
}

func newSilence() (*silentSite, *Silence, *observer.ObservedLogs) {
	core, logs := observer.New(zap.InfoLevel)
	site := &silentSite{seen: map[version]bool{}}
	return site, NewSilence(SilenceConfig{Rows: site, Holds: site, Log: zap.New(core), Clock: time.Now}), logs
}

// silencedRow is one as Phorge leaves it.
func silencedRow(phid string, modified int64) herald.Request {
	return herald.Request{
		PHID: phid, HookPHID: "PHID-HWBH-x", Status: herald.StatusFailed, LastResult: herald.ResultNone, Modified: modified,
		Properties: []byte(`{"errorType":"hook","errorCode":"silent"}`),
	}
}

func look(t *testing.T, s *Silence) {
	t.Helper()
	if err := s.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestSilenceHoldsOnceAndSaysSoOnce(t *testing.T) {
	site, s, logs := newSilence()
	look(t, s)
	if site.paused {
		t.Error("held without a row")
	}
	site.rows = []herald.Request{silencedRow("a", 5)}
	look(t, s)
	if !site.paused || site.pausing.HookPHID != "*" || site.pausing.By != "waybill" ||
		!strings.Contains(site.pausing.Reason, "Phorge's site is silent: it failed a for that") || !strings.Contains(site.pausing.Reason, "resume --all") {
		t.Errorf("held with %+v", site.pausing)
	}
	site.rows = append(site.rows, silencedRow("b", 6))
	look(t, s)
	look(t, s)
	if site.told != 2 {
		t.Errorf("%d rows were handed over, want each once", site.told)
	}
	site.paused = false // resumed
	look(t, s)
	if site.paused {
		t.Error("held again by rows that were known")
	}
	site.rows = append(site.rows, silencedRow("b", 7))
	look(t, s)
	if !site.paused {
		t.Error("not held by a row that was silenced again")
	}
	if n := logs.FilterLevelExact(zap.WarnLevel).Len(); n != 2 {
		t.Errorf("%d warnings, want one for each hold", n)
	}
}

// A row that deliveries come across counts like one that was looked for, as
// long as it is as young.
func TestRowsComeAcrossAreEvidence(t *testing.T) {
	for name, tt := range map[string]struct {
		row   herald.Request
		now   int64
		holds bool
	}{
		"fresh":        {silencedRow("a", 1000), 1000, true},
		"ten minutes":  {silencedRow("a", 1000), 1600, true},
		"older":        {silencedRow("a", 1000), 1601, false},
		"ahead":        {silencedRow("a", 1000), 10, true},
		"another word": {herald.Request{PHID: "a", Status: herald.StatusSent, Modified: 1000}, 1000, false},
	} {
		site, s, _ := newSilence()
		s.Found(herald.Snapshot{Request: tt.row, Now: tt.now})
		look(t, s)
		if site.paused != tt.holds {
			t.Errorf("%s: held %v", name, site.paused)
		}
	}
}

// What could not be written down is not forgotten, and not called looked at.
func TestSilenceIsTriedAgainAfterTrouble(t *testing.T) {
	site, s, logs := newSilence()
	site.unread = true
	if s.Look(t.Context()) == nil {
		t.Error("a look that saw nothing counts")
	}
	site.unread, site.unheld = false, true
	site.rows = []herald.Request{silencedRow("a", 5)}
	s.Found(herald.Snapshot{Request: silencedRow("old", 5), Now: 5})
	for range 3 {
		err := s.Look(t.Context())
		if err == nil {
			t.Error("a hold that was not written counts")
		}
		s.tell(t.Context(), err)
	}
	site.unheld = false
	s.tell(t.Context(), s.Look(t.Context()))
	if !site.seen[version{"a", 5}] || !site.seen[version{"old", 5}] || !site.paused {
		t.Errorf("remembered %v, held %v", site.seen, site.paused)
	}
	if n := logs.FilterMessageSnippet("trying again").Len(); n != 1 {
		t.Errorf("%d lines about the trouble, want one", n)
	}
	if n := logs.FilterMessageSnippet("works again").Len(); n != 1 {
		t.Errorf("%d lines about its end, want one", n)
	}
}

// A row that a delivery comes across holds without waiting for the next look.
func TestSilenceRunsAtOnceWhenARowIsComeAcross(t *testing.T) {
	_, s, _ := newSilence()
	s.Found(herald.Snapshot{Request: silencedRow("a", 5), Now: 5})
	select {
	case <-s.wake:
	default:
		t.Error("nobody is woken")
	}
	for range 2 * foundAtMost { // never blocks, never grows
		s.Found(herald.Snapshot{Request: silencedRow("a", 5), Now: 5})
	}
	if n := len(s.take()); n != foundAtMost {
		t.Errorf("%d rows kept, want %d", n, foundAtMost)
	}
}
