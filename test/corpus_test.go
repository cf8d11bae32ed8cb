package acceptance

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"waybill/internal/devstack"
	"waybill/internal/devstack/stacktest"
	"waybill/test/scenario"
)

// recordedData is where the recorded cases of a real Phorge are kept, once for
// the whole repository; its SOURCE file says where they come from.
const recordedData = "../internal/herald/testdata"

// recordedAt is the receiver that the recorded URIs name.
const recordedAt = "127.0.0.1:18080"

// recorded is one case: a row before and after Phorge had it, and what Phorge
// put on the wire in between.
type recorded struct {
	Name     string `json:"case"`
	Endpoint string `json:"endpoint"`
	Setup    struct {
		Blacklist any    `json:"blacklist"` // "default" or a list of networks
		SQLStatus string `json:"sqlStatus"`
	} `json:"setup"`
	Hook     recordedHook `json:"hook"`
	Before   recordedRows `json:"before"`
	After    recordedRows `json:"after"`
	Requests [][]byte     `json:"requests"`
	Expect   struct {
		Compare, Target string
		ErrorCode       int `json:"errorCode"`
	} `json:"expect"`
}

type recordedHook struct {
	PHID    string `json:"phid"`
	URI     string `json:"uri"`
	HMACKey string `json:"hmacKey"`
	Status  string `json:"status"`
}

// recordedRows is one row or a list of them.
type recordedRows []recordedRow

type recordedRow struct {
	PHID       string `json:"phid"`
	HookPHID   string `json:"webhookPHID"`
	ObjectPHID string `json:"objectPHID"`
	Status     string `json:"status"`
	Properties string `json:"properties"`
	LastResult string `json:"lastRequestResult"`
	LastEpoch  int64  `json:"lastRequestEpoch"`
	Created    int64  `json:"dateCreated"`
	Modified   int64  `json:"dateModified"`
}

func (r *recordedRows) UnmarshalJSON(raw []byte) error {
	if raw[0] == '[' {
		return json.Unmarshal(raw, (*[]recordedRow)(r))
	}
	*r = make(recordedRows, 1)
	return json.Unmarshal(raw, &(*r)[0])
}

// row is the recorded row as it is inserted: every column but the id, with the
// recorded times, because the document's epoch and so the signature depend on
// dateCreated.
func (r recordedRow) row() devstack.Row {
	return devstack.Row{
		PHID: r.PHID, HookPHID: r.HookPHID, ObjectPHID: r.ObjectPHID, Status: r.Status,
		Properties: r.Properties, LastResult: r.LastResult, LastEpoch: r.LastEpoch,
		Created: r.Created, Modified: r.Modified,
	}
}

// changes says whether Phorge wrote the row at all.
func (c recorded) changes() bool {
	return c.Before[0].Status != c.After[0].Status || c.Before[0].LastResult != c.After[0].LastResult
}

// wires are the recorded requests, taken apart.
func (c recorded) wires() []scenario.Wire {
	wires := make([]scenario.Wire, 0, len(c.Requests))
	for _, raw := range c.Requests {
		wires = append(wires, scenario.ParseWire(raw))
	}
	return wires
}

// corpus reads the recorded cases that which chooses.
func corpus(t *testing.T, which func(recorded) bool) []recorded {
	t.Helper()
	var file struct{ Cases []recorded }
	readRecorded(t, "corpus.json", &file)
	if len(file.Cases) < 180 {
		t.Fatalf("only %d recorded cases", len(file.Cases))
	}
	var chosen []recorded
	for _, c := range file.Cases {
		if which(c) {
			chosen = append(chosen, c)
		}
	}
	return chosen
}

// recordedCase reads one case by name, for the manual ones.
func recordedCase(t *testing.T, name string) recorded {
	t.Helper()
	found := corpus(t, func(c recorded) bool { return c.Name == name })
	if len(found) != 1 {
		t.Fatalf("%d recorded cases are called %s", len(found), name)
	}
	return found[0]
}

func readRecorded(t *testing.T, name string, into any) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(recordedData, name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatal(name, err)
	}
}

// enter inserts the hooks and rows of cases, and the objects behind them.
func enter(t *testing.T, s *scenario.Site, cases []recorded) {
	t.Helper()
	enterObjects(t, s)
	for _, c := range cases {
		enterHook(t, s, c.Hook)
		for _, r := range c.Before {
			insert(t, s, r.row())
		}
	}
}

func enterHook(t *testing.T, s *scenario.Site, h recordedHook) {
	t.Helper()
	execSQL(t, s, "INSERT INTO "+s.Database("herald")+".herald_webhook"+
		" (phid, name, webhookURI, viewPolicy, editPolicy, status, hmacKey, dateCreated, dateModified)"+
		" VALUES (?, 'recorded', ?, 'users', 'users', ?, ?, UNIX_TIMESTAMP(), UNIX_TIMESTAMP())",
		h.PHID, h.URI, h.Status, h.HMACKey)
}

// enterObjects inserts what the recorded cases are about, with the recorded
// ids: the order of transactions on the wire is that of their ids.
func enterObjects(t *testing.T, s *scenario.Site) {
	t.Helper()
	var file struct {
		Tasks        []recordedObject `json:"maniphest_task"`
		Users        []recordedObject `json:"user"`
		Transactions []recordedObject `json:"maniphest_transaction"`
	}
	readRecorded(t, "objects.json", &file)
	enterApplications(t, s)
	for _, o := range file.Tasks {
		execSQL(t, s, "INSERT INTO "+s.Database("maniphest")+".maniphest_task (id, phid, authorPHID, status, priority, title,"+
			" viewPolicy, editPolicy, dateCreated, dateModified) VALUES (?, ?, '', 'open', 90, '', 'users', 'users', 1, 1)", o.ID, o.PHID)
	}
	for _, o := range file.Users {
		execSQL(t, s, "INSERT INTO "+s.Database("user")+".user (id, phid, userName, realName, dateCreated, dateModified)"+
			" VALUES (?, ?, ?, '', 1, 1)", o.ID, o.PHID, o.PHID)
	}
	for _, o := range file.Transactions {
		execSQL(t, s, "INSERT INTO "+s.Database("maniphest")+".maniphest_transaction (id, phid, authorPHID, objectPHID, viewPolicy,"+
			" editPolicy, commentVersion, transactionType, oldValue, newValue, contentSource, metadata, dateCreated, dateModified)"+
			" VALUES (?, ?, '', ?, 'public', 'public', 0, 'title', '', '', '', '', 1, 1)", o.ID, o.PHID, o.ObjectPHID)
	}
}

// enterApplications makes the transaction table of one more kind of object,
// empty as it was on the recorded Phorge. Without it Waybill has to take a
// request's word for what exists.
func enterApplications(t *testing.T, s *scenario.Site) {
	t.Helper()
	database := s.Database("application")
	execSQL(t, s, "CREATE DATABASE "+database)
	t.Cleanup(func() {
		_, _ = stacktest.Open(t, s.MariaDB, "").ExecContext(context.Background(), "DROP DATABASE "+database)
	})
	execSQL(t, s, "CREATE TABLE "+database+".application_applicationtransaction LIKE "+s.Database("maniphest")+".maniphest_transaction")
}

type recordedObject struct {
	ID         int    `json:"id"`
	PHID       string `json:"phid"`
	ObjectPHID string `json:"objectPHID"`
}

// splitErrors takes the error keys off the end of properties that Phorge or
// Waybill has written: what was there before, and what was appended.
func splitErrors(properties string) (before, errors string) {
	at := strings.Index(properties, `,"errorType"`)
	if at < 0 {
		return properties, ""
	}
	return properties[:at] + "}", properties[at:]
}
