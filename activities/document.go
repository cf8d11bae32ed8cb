package activities

import (
	"context"
	"slices"

	"waybill/internal/herald"
)

// transactions finds which of the request's transactions exist, newest first.
// Where Waybill may not look, the property's own order is reversed, which is
// right for every row that Phorge's editor writes.
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
		return nil, untouched("Phorge keeps no transactions for objects of this type and cannot call hooks about them."), nil
	}
	phids := p.TransactionPHIDs()
	if known && len(phids) > 0 {
		found, readable, err := h.Objects.Transactions(ctx, *tables.Transactions, r.ObjectPHID, phids)
		if err != nil || readable {
			return found, ClaimResult{}, err
		}
	}
	slices.Reverse(phids)
	return phids, ClaimResult{}, nil
}
