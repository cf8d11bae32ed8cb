package starter

import (
	"context"
	"sync"

	"go.uber.org/zap"
)

// What a starter depends on, as logs name it.
const (
	theQueue  = "Phorge's request table"
	theHooks  = "Phorge's hook table"
	thePauses = "Waybill's pause table"
	theServer = "Temporal"
)

// notes log the first of a row of failures and their end: thousands of feeds
// meet the same one, every second.
type notes struct {
	log *zap.Logger
	mu  sync.Mutex
	bad map[string]bool
}

// note takes down how something answered. recovered: it did not before. What
// fails because ctx ended says nothing.
func (n *notes) note(ctx context.Context, what string, err error) (recovered bool) {
	if ctx.Err() != nil {
		return false
	}
	n.mu.Lock()
	was := n.bad[what]
	n.bad[what] = err != nil
	n.mu.Unlock()
	switch {
	case err != nil && !was:
		n.log.Warn(what+" does not answer as it should, trying again", zap.Error(err))
	case err == nil && was:
		n.log.Info(what + " answers again")
	}
	return err == nil && was
}
