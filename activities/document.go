package activities

import (
	"context"
	"slices"
	"strings"

	"waybill/internal/herald"
)

// transactions finds which of the request's transactions exist, newest first.
// Where Waybill may not look, those of other types are dropped and the
// property's own order is reversed, which is right for every row that Phorge's
// editor writes.
func (h *Herald) transactions(ctx context.Context, s herald.Snapshot, p herald.Properties) ([]string, ClaimResult, error) {
	r := s.Request
	kind := herald.ObjectType(r.ObjectPHID)
	tables, known := herald.Tables(kind)
	if kind == herald.NoType {
		end, err := h.misconfigured(ctx, s, p, herald.HookObject)
		return nil, end, err
	}
	if known && tables.Object != nil {
		exists, err := h.Objects.Object(ctx, *tables.Object, r.ObjectPHID)
		if err != nil {
			return nil, ClaimResult{}, err
		}
		if exists == herald.Missing {
			end, err := h.misconfigured(ctx, s, p, herald.HookObject)
			return nil, end, err
		}
	}
	if known && tables.Transactions == nil {
		return nil, h.untouched(r, "Phorge keeps no transactions for objects of this type and cannot call hooks about them."), nil
	}
	phids := p.TransactionPHIDs()
	if known && len(phids) > 0 {
		found, readable, err := h.Objects.Transactions(ctx, *tables.Transactions, r.ObjectPHID, phids)
		if err != nil || readable {
			return found, ClaimResult{}, err
		}
	}
	phids = slices.DeleteFunc(phids, func(phid string) bool { return foreign(phid, kind) })
	slices.Reverse(phids)
	return phids, ClaimResult{}, nil
}

// foreign reports whether a transaction's PHID names another type of object
// than the request's: PHID-XACT-TASK-… is a task's, and Phorge itself finds a
// transaction's application by that part.
func foreign(transaction, kind string) bool {
	rest, ok := strings.CutPrefix(transaction, "PHID-XACT-")
	return ok && !strings.HasPrefix(rest, kind+"-")
}
