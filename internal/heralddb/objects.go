package heralddb

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"waybill/internal/herald"
)

// unreadableFor is how long a table that may not be read is left alone before
// it is asked again: grants and installed applications do change, rarely.
const unreadableFor = 5 * time.Minute

// batch bounds one IN list; a longer list of transactions takes more statements.
const batch = 1000

// unreadableErrors are the server's ways to say that a table is not ours to
// read: no such database or table, or no right to it.
var unreadableErrors = map[uint16]bool{
	1044: true, // ER_DBACCESS_DENIED_ERROR
	1049: true, // ER_BAD_DB_ERROR
	1142: true, // ER_TABLEACCESS_DENIED_ERROR
	1143: true, // ER_COLUMNACCESS_DENIED_ERROR
	1146: true, // ER_NO_SUCH_TABLE
	1054: true, // ER_BAD_FIELD_ERROR: not the table we know
}

// Object says whether a PHID names an object, as far as its table may be read.
func (d *DB) Object(ctx context.Context, table herald.Table, phid string) (herald.Knowledge, error) {
	name := d.quote(table)
	if d.skip(name) {
		return herald.Unknown, nil
	}
	var one int
	err := d.pool.QueryRowContext(ctx, "SELECT 1 FROM "+name+" WHERE phid = ?", phid).Scan(&one)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return herald.Missing, nil
	case d.isUnreadable(name, err):
		return herald.Unknown, nil
	case err != nil:
		return herald.Unknown, fmt.Errorf("look up an object: %w", err)
	}
	return herald.Exists, nil
}

// Transactions returns those of phids that exist for the object, newest first.
// readable is false when the table may not be read.
func (d *DB) Transactions(ctx context.Context, table herald.Table, objectPHID string, phids []string) (found []string, readable bool, err error) {
	name := d.quote(table)
	if d.skip(name) {
		return nil, false, nil
	}
	type transaction struct {
		id   uint64
		phid string
	}
	var all []transaction
	for part := range slices.Chunk(phids, batch) {
		rows, err := d.pool.QueryContext(ctx, transactionsSQL(name, len(part)), transactionArgs(objectPHID, part)...)
		if d.isUnreadable(name, err) {
			return nil, false, nil
		}
		if err != nil {
			return nil, false, fmt.Errorf("look up transactions: %w", err)
		}
		some, err := collect(rows, "look up transactions", func(t *transaction) error { return rows.Scan(&t.id, &t.phid) })
		if err != nil {
			return nil, false, err
		}
		all = append(all, some...)
	}
	slices.SortFunc(all, func(a, b transaction) int { return cmp.Compare(b.id, a.id) })
	for _, t := range all {
		found = append(found, t.phid)
	}
	return found, true, nil
}

func transactionsSQL(table string, n int) string {
	return "SELECT id, phid FROM " + table + " WHERE objectPHID = ? AND phid IN (?" +
		strings.Repeat(",?", n-1) + ")"
}

func transactionArgs(objectPHID string, phids []string) []any {
	args := make([]any, 0, len(phids)+1)
	args = append(args, objectPHID)
	for _, p := range phids {
		args = append(args, p)
	}
	return args
}

// quote names a table of another Phorge database.
func (d *DB) quote(t herald.Table) string {
	return "`" + d.cfg.Namespace + "_" + t.Database + "`.`" + t.Name + "`"
}

// skip reports whether the table was found unreadable a short while ago.
func (d *DB) skip(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	until, ok := d.unreadable[name]
	return ok && d.cfg.Clock().Before(until)
}

// isUnreadable remembers a table that the server refuses, and tells about it
// the first time.
func (d *DB) isUnreadable(name string, err error) bool {
	var my *mysql.MySQLError
	if !errors.As(err, &my) || !unreadableErrors[my.Number] {
		return false
	}
	d.mu.Lock()
	d.unreadable[name] = d.cfg.Clock().Add(unreadableFor)
	first := !d.told[name]
	d.told[name] = true
	d.mu.Unlock()
	if first && d.cfg.Unreadable != nil {
		d.cfg.Unreadable(strings.ReplaceAll(name, "`", ""))
	}
	return true
}
