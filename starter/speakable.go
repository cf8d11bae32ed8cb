package starter

import (
	"go.uber.org/zap"

	"waybill/internal/herald"
)

// report leaves a row alone that cannot be named, and says so once per version.
func (f *feed) report(c herald.Candidate) {
	f.leave(c, untouchedRest)
	if version, told := f.reported[c.ID]; told && version == c.Modified {
		return
	}
	f.reported[c.ID] = c.Modified
	f.starter.cfg.Log.Warn("request cannot be processed and stays in the queue as it is",
		zap.Uint64("id", c.ID), zap.String("hook", f.hook), zap.String("reason", "Its PHID is not printable."))
}

// unspeakable says once that a hook cannot be named.
func (s *Starter) unspeakable(hook string) {
	s.mu.Lock()
	told := s.told[hook]
	s.told[hook] = true
	s.mu.Unlock()
	if !told {
		s.cfg.Log.Warn("hook cannot be served, its requests stay in the queue as they are",
			zap.Binary("hook", []byte(hook)), zap.String("reason", "Its PHID is not printable."))
	}
}
