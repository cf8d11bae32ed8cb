package worker

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"waybill/internal/herald"
	"waybill/internal/heralddb"
	"waybill/internal/ledger"
)

// Times and sizes of looking for silence.
const (
	// silenceEvery is how soon a row that Phorge silences holds all hooks.
	silenceEvery = time.Second
	// silenceWithin bounds one look, so that a server that hangs is told about.
	silenceWithin = 10 * time.Second
	// foundAtMost bounds rows that were come across and are not remembered yet:
	// one of them holds all hooks, and they stop coming then.
	foundAtMost = 1000
)

// silenceBy is who pauses then, in place of an operator.
const silenceBy = "waybill"

// HoldsForSilence says that a pause is the one that Waybill makes of a silent site.
func HoldsForSilence(p herald.Pause) bool {
	return p.HookPHID == ledger.AllHooks && p.By == silenceBy && !p.Released
}

// silenceReason is what people read who find all hooks paused.
const silenceReason = "Phorge's site is silent: it failed %s for that. Switch phabricator.silent off, then: waybill hooks resume --all"

// silenced finds rows that Phorge itself has failed lately because its site is
// silent.
type silenced interface {
	Silenced(ctx context.Context) ([]herald.Request, error)
}

// holder remembers such rows and holds all hooks for new ones.
type holder interface {
	Hold(ctx context.Context, evidence []herald.Request, p herald.Pause) (held bool, err error)
}

// SilenceConfig is what looking for silence needs; every field is required.
type SilenceConfig struct {
	Rows  silenced
	Holds holder
	Log   *zap.Logger
	Clock func() time.Time
}

// Silence pauses all hooks when Phorge's site has been made silent. The setting
// itself stands in no database: what shows is that Phorge's own workers fail
// the rows they poll. One such row of the last ten minutes is enough. That is
// the best there is, not a guarantee: until the first row nothing shows.
type Silence struct {
	cfg  SilenceConfig
	wake chan struct{}

	mu    sync.Mutex
	found []herald.Request // come across on a delivery's path, not remembered yet

	// Only one goroutine looks.
	known   map[version]bool // rows of the last look, all of them remembered
	trouble bool
}

// version is a row as somebody saved it.
type version struct {
	phid     string
	modified int64
}

// NewSilence makes a Silence that has not looked yet.
func NewSilence(cfg SilenceConfig) *Silence {
	return &Silence{cfg: cfg, wake: make(chan struct{}, 1)}
}

// Run looks every second, and at once when a row was come across, until ctx
// ends.
func (s *Silence) Run(ctx context.Context) {
	tick := time.NewTicker(silenceEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-s.wake:
		}
		s.tell(ctx, s.Look(ctx))
	}
}

// Look looks once, and holds all hooks if there is a row that no process has
// held them for. Nothing may be sent before the first look has worked.
func (s *Silence) Look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, silenceWithin)
	defer cancel()
	rows, err := s.cfg.Rows.Silenced(ctx)
	if err != nil {
		return err
	}
	found := s.take()
	known := make(map[version]bool, len(rows))
	var fresh []herald.Request
	for _, r := range append(rows, found...) {
		v := version{r.PHID, r.Modified}
		if !s.known[v] && !known[v] {
			fresh = append(fresh, r)
		}
		known[v] = true
	}
	if len(fresh) > 0 {
		if err := s.hold(ctx, fresh); err != nil {
			s.putBack(found)
			return err
		}
	}
	s.known = known
	return nil
}

func (s *Silence) hold(ctx context.Context, fresh []herald.Request) error {
	last := fresh[len(fresh)-1]
	held, err := s.cfg.Holds.Hold(ctx, fresh, herald.Pause{
		HookPHID: ledger.AllHooks, At: s.cfg.Clock(), By: silenceBy, Reason: fmt.Sprintf(silenceReason, last.PHID),
	})
	if err == nil && held {
		s.cfg.Log.Warn("Phorge's site is silent: all hooks are paused until `waybill hooks resume --all`",
			zap.String("request", last.PHID), zap.String("hook", last.HookPHID), zap.Int("rows", len(fresh)))
	}
	return err
}

// Found takes a row that was come across finished. An old row, whose backoff
// was long or whose hook was held, is too far from the newest for a look.
func (s *Silence) Found(snap herald.Snapshot) {
	r := snap.Request
	if snap.Now-r.Modified > int64(heralddb.SilenceWindow/time.Second) || !r.Silenced() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.found) >= foundAtMost {
		return
	}
	s.found = append(s.found, r)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *Silence) take() []herald.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.found
	s.found = nil
	return found
}

func (s *Silence) putBack(found []herald.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found = append(found, s.found...)
}

// tell says once that looking does not work, and once that it does again.
func (s *Silence) tell(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil || (err != nil) == s.trouble:
		return
	case err != nil:
		s.cfg.Log.Warn("cannot look whether Phorge's site is silent, trying again", zap.Error(err))
	default:
		s.cfg.Log.Info("looking whether Phorge's site is silent works again")
	}
	s.trouble = err != nil
}
