package activities

import (
	"context"

	"waybill/internal/herald"
)

// witness is told what rows say, for what shows only across rows or later:
// that Phorge's site is silent, that a save of Phorge's replaced a result. It
// is told on the path of a delivery and must not wait for anything.
type witness interface {
	// Wrote: the result stands in the row, written by this process.
	Wrote(ref Ref, w herald.ResultWrite)
	// Found: the row was finished when its turn came, or somebody else's word
	// stood in it when this process wanted to write its own.
	Found(s herald.Snapshot)
}

// finish makes one fenced write and lets the witness know what came of it.
// stands is what the row says instead, when somebody else was there.
func (h *Herald) finish(ctx context.Context, ref Ref, w herald.ResultWrite) (out herald.WriteOutcome, stands string, err error) {
	out, err = h.Rows.Finish(ctx, w)
	switch {
	case err != nil:
	case out == herald.Written:
		h.Witness.Wrote(ref, w)
	case out == herald.Fenced:
		stands = h.standing(ctx, ref.ID)
	}
	return out, stands, err
}

// standing reads a row that somebody else has changed. It is for people: a row
// that cannot be read now is told as that.
func (h *Herald) standing(ctx context.Context, id uint64) string {
	s, err := h.Rows.Load(ctx, id)
	if err != nil {
		return "unreadable"
	}
	h.Witness.Found(s)
	return s.Request.Ending().String()
}
