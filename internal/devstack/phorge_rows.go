package devstack

import (
	"context"
	"fmt"
	"time"
)

// latestTransactions is how many of an object's transactions the test button
// and the command line put into a request: the newest ten.
const latestTransactions = 10

// Hook is a row of herald_webhook. Key is a secret.
type Hook struct {
	PHID, Name, URI, Key string
	// Status: enabled (rules call it), firehose (everything does) or disabled.
	Status string
}

// hookKeyLength is what Phorge generates: 32 characters, the column's width.
const hookKeyLength = 32

// CreateHook inserts a hook. PHID, Key and Status may be empty: a new PHID, a
// random key, enabled. The answer is the hook as stored.
func (p *Phorge) CreateHook(ctx context.Context, h Hook) (Hook, error) {
	if h.PHID == "" {
		h.PHID = NewPHID("HWBH")
	}
	if h.Key == "" {
		h.Key = RandomName(hookKeyLength)
	}
	if h.Status == "" {
		h.Status = "enabled"
	}
	_, err := p.DB.ExecContext(ctx, "INSERT INTO "+p.table("herald", "herald_webhook")+
		" (phid, name, webhookURI, viewPolicy, editPolicy, status, hmacKey, dateCreated, dateModified)"+
		" VALUES (?, ?, ?, 'users', 'users', ?, ?, UNIX_TIMESTAMP(), UNIX_TIMESTAMP())",
		h.PHID, h.Name, h.URI, h.Status, h.Key)
	return h, err
}

// Hooks lists all hooks, oldest first.
func (p *Phorge) Hooks(ctx context.Context) ([]Hook, error) {
	rows, err := p.DB.QueryContext(ctx, "SELECT phid, name, webhookURI, hmacKey, status FROM "+
		p.table("herald", "herald_webhook")+" ORDER BY id")
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var hooks []Hook
	for rows.Next() {
		var h Hook
		if err := rows.Scan(&h.PHID, &h.Name, &h.URI, &h.Key, &h.Status); err != nil {
			return nil, err
		}
		hooks = append(hooks, h)
	}
	return hooks, rows.Err()
}

// SetHookURI points a hook to another address.
func (p *Phorge) SetHookURI(ctx context.Context, phid, uri string) error {
	_, err := p.DB.ExecContext(ctx, "UPDATE "+p.table("herald", "herald_webhook")+
		" SET webhookURI = ?, dateModified = UNIX_TIMESTAMP() WHERE phid = ?", uri, phid)
	return err
}

// SetHookStatus makes a hook firehose, enabled or disabled, as an administrator
// does in Phorge.
func (p *Phorge) SetHookStatus(ctx context.Context, phid, status string) error {
	_, err := p.DB.ExecContext(ctx, "UPDATE "+p.table("herald", "herald_webhook")+" SET status = ?, dateModified = UNIX_TIMESTAMP() WHERE phid = ?", status, phid)
	return err
}

// CreateUser inserts a user and returns the PHID.
func (p *Phorge) CreateUser(ctx context.Context, name string) (string, error) {
	phid := NewPHID("USER")
	_, err := p.DB.ExecContext(ctx, "INSERT INTO "+p.table("user", "user")+
		" (phid, userName, realName, dateCreated, dateModified)"+
		" VALUES (?, ?, ?, UNIX_TIMESTAMP(), UNIX_TIMESTAMP())", phid, name, name)
	return phid, err
}

// CreateTask inserts a task of that author and returns the PHID.
func (p *Phorge) CreateTask(ctx context.Context, author, title string) (string, error) {
	phid := NewPHID("TASK")
	_, err := p.DB.ExecContext(ctx, "INSERT INTO "+p.table("maniphest", "maniphest_task")+
		" (phid, authorPHID, status, priority, title, viewPolicy, editPolicy, dateCreated, dateModified)"+
		" VALUES (?, ?, 'open', 90, ?, 'users', 'users', UNIX_TIMESTAMP(), UNIX_TIMESTAMP())",
		phid, author, title)
	return phid, err
}

// AddTransactions adds n transactions to a task and returns their PHIDs in the
// order of their row ids, oldest first.
func (p *Phorge) AddTransactions(ctx context.Context, author, task string, n int) ([]string, error) {
	phids := make([]string, n)
	for i := range phids {
		phids[i] = NewTransactionPHID("TASK")
		_, err := p.DB.ExecContext(ctx, "INSERT INTO "+p.table("maniphest", "maniphest_transaction")+
			" (phid, authorPHID, objectPHID, viewPolicy, editPolicy, commentVersion, transactionType,"+
			" oldValue, newValue, contentSource, metadata, dateCreated, dateModified)"+
			" VALUES (?, ?, ?, 'public', ?, 0, 'title', ?, ?, ?, '[]', UNIX_TIMESTAMP(), UNIX_TIMESTAMP())",
			phids[i], author, task, author, `"before"`, `"after"`, `{"source":"web","params":[]}`)
		if err != nil {
			return nil, err
		}
	}
	return phids, nil
}

// transactionRow is what a request needs of a transaction.
type transactionRow struct {
	id   int64
	phid string
}

// latest reads a task's newest transactions, newest first.
func (p *Phorge) latest(ctx context.Context, task string) ([]transactionRow, error) {
	rows, err := p.DB.QueryContext(ctx, "SELECT id, phid FROM "+p.table("maniphest", "maniphest_transaction")+
		" WHERE objectPHID = ? ORDER BY id DESC LIMIT ?", task, latestTransactions)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var found []transactionRow
	for rows.Next() {
		var t transactionRow
		if err := rows.Scan(&t.id, &t.phid); err != nil {
			return nil, err
		}
		found = append(found, t)
	}
	return found, rows.Err()
}

// Edit is what an editor knows when it queues a call: an object, what was done
// to it, and which rules (or, for a firehose hook, the hook itself) asked.
type Edit struct {
	Hook, Object           string
	Transactions, Triggers []string
	Silent, Secure         bool
}

// EnqueueEditor queues a call as Phorge's editors do and returns the request's
// PHID. Such a request is retried forever.
func (p *Phorge) EnqueueEditor(ctx context.Context, e Edit) (string, error) {
	return p.enqueue(ctx, e.Hook, e.Object, editorProperties(e.Transactions, e.Triggers, e.Silent, e.Secure))
}

// EnqueueTest queues a call as the web page's test button does: the task's
// newest transactions, the viewer as trigger, never retried.
func (p *Phorge) EnqueueTest(ctx context.Context, hook, task, viewer string) (string, error) {
	transactions, err := p.latest(ctx, task)
	if err != nil {
		return "", err
	}
	return p.enqueue(ctx, hook, task, testProperties(viewer, transactions))
}

// Call holds the arguments of `bin/webhook call`.
type Call struct {
	Hook, Object   string
	Silent, Secure bool
}

// EnqueueCommandLine queues a call as `bin/webhook call` does.
func (p *Phorge) EnqueueCommandLine(ctx context.Context, c Call) (string, error) {
	transactions, err := p.latest(ctx, c.Object)
	if err != nil {
		return "", err
	}
	return p.enqueue(ctx, c.Hook, c.Object, commandLineProperties(c.Silent, c.Secure, transactions))
}

func (p *Phorge) enqueue(ctx context.Context, hook, object, properties string) (string, error) {
	r := Row{HookPHID: hook, ObjectPHID: object, Properties: properties}
	stored, err := p.Insert(ctx, r)
	return stored.PHID, err
}

// Row is a row of herald_webhookrequest. Times are seconds of the database's
// clock.
type Row struct {
	ID                             int64
	PHID, HookPHID, ObjectPHID     string
	Status, Properties, LastResult string
	LastEpoch, Created, Modified   int64
	// Age dates a new row back; Insert only.
	Age time.Duration
}

// Insert writes a row as it is, for what the writers above never write. Empty
// fields get what a fresh request has: a new PHID, queued, none, and the
// database's time less Age where Created or Modified is 0. The answer is the
// row as stored.
func (p *Phorge) Insert(ctx context.Context, r Row) (Row, error) {
	if r.PHID == "" {
		r.PHID = NewPHID("HWBR")
	}
	if r.Status == "" {
		r.Status = "queued"
	}
	if r.LastResult == "" {
		r.LastResult = "none"
	}
	age := int64(r.Age / time.Second)
	_, err := p.DB.ExecContext(ctx, "INSERT INTO "+p.table("herald", "herald_webhookrequest")+
		" (phid, webhookPHID, objectPHID, status, properties, lastRequestResult, lastRequestEpoch,"+
		" dateCreated, dateModified) VALUES (?, ?, ?, ?, ?, ?, ?,"+
		" IF(? = 0, UNIX_TIMESTAMP() - ?, ?), IF(? = 0, dateCreated, ?))",
		r.PHID, r.HookPHID, r.ObjectPHID, r.Status, r.Properties, r.LastResult, r.LastEpoch,
		r.Created, age, r.Created, r.Modified, r.Modified)
	if err != nil {
		return Row{}, err
	}
	return p.Row(ctx, r.PHID)
}

// Row reads a request. A collected one gives an error that wraps
// sql.ErrNoRows.
func (p *Phorge) Row(ctx context.Context, phid string) (Row, error) {
	var r Row
	err := p.DB.QueryRowContext(ctx, "SELECT id, phid, webhookPHID, objectPHID, status, properties,"+
		" lastRequestResult, lastRequestEpoch, dateCreated, dateModified FROM "+
		p.table("herald", "herald_webhookrequest")+" WHERE phid = ?", phid).
		Scan(&r.ID, &r.PHID, &r.HookPHID, &r.ObjectPHID, &r.Status, &r.Properties,
			&r.LastResult, &r.LastEpoch, &r.Created, &r.Modified)
	if err != nil {
		return Row{}, fmt.Errorf("request %s: %w", phid, err)
	}
	return r, nil
}

// Collect deletes a request, as Phorge's garbage collector may do any time.
func (p *Phorge) Collect(ctx context.Context, phid string) error {
	_, err := p.DB.ExecContext(ctx, "DELETE FROM "+p.table("herald", "herald_webhookrequest")+" WHERE phid = ?", phid)
	return err
}
