package devstack

import (
	"context"
	"strings"
)

// bulkRows is how many rows one statement writes: far below the placeholders
// and bytes that servers allow, and a thousand rows are still two statements.
const bulkRows = 500

// EnqueueMany queues n calls like EnqueueEditor, with few statements.
func (p *Phorge) EnqueueMany(ctx context.Context, e Edit, n int) error {
	properties := editorProperties(e.Transactions, e.Triggers, e.Silent, e.Secure)
	for n > 0 {
		rows := min(n, bulkRows)
		if err := p.insertCalls(ctx, e, properties, rows); err != nil {
			return err
		}
		n -= rows
	}
	return nil
}

func (p *Phorge) insertCalls(ctx context.Context, e Edit, properties string, rows int) error {
	const row = ", (?, ?, ?, 'queued', ?, 'none', 0, UNIX_TIMESTAMP(), UNIX_TIMESTAMP())"
	var values []any
	for range rows {
		values = append(values, NewPHID("HWBR"), e.Hook, e.Object, properties)
	}
	_, err := p.DB.ExecContext(ctx, "INSERT INTO "+p.table("herald", "herald_webhookrequest")+
		" (phid, webhookPHID, objectPHID, status, properties, lastRequestResult, lastRequestEpoch,"+
		" dateCreated, dateModified) VALUES "+strings.Repeat(row, rows)[2:], values...)
	return err
}
