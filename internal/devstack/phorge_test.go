package devstack_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"waybill/internal/devstack"
	"waybill/internal/devstack/stacktest"
)

type column struct{ name, kind, null, extra, collation string }

func columns(t *testing.T, p *devstack.Phorge, database, table string) (found []column) {
	t.Helper()
	rows, err := p.DB.QueryContext(t.Context(), `SELECT COLUMN_NAME, COLUMN_TYPE, IS_NULLABLE, EXTRA, COALESCE(COLLATION_NAME, '')
		FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? ORDER BY ORDINAL_POSITION`,
		p.Database(database), table)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var c column
		if err := rows.Scan(&c.name, &c.kind, &c.null, &c.extra, &c.collation); err != nil {
			t.Fatal(err)
		}
		// MySQL 8 no longer shows a display width.
		c.kind = strings.Replace(c.kind, "int(10)", "int", 1)
		found = append(found, c)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return found
}

func keys(t *testing.T, p *devstack.Phorge, database, table string) string {
	t.Helper()
	var all string
	err := p.DB.QueryRowContext(t.Context(), `SELECT GROUP_CONCAT(k ORDER BY k SEPARATOR '; ') FROM (
		SELECT CONCAT(INDEX_NAME, IF(NON_UNIQUE, '', '!'), '(', GROUP_CONCAT(COLUMN_NAME ORDER BY SEQ_IN_INDEX), ')') AS k
		FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? GROUP BY INDEX_NAME, NON_UNIQUE) AS ks`,
		p.Database(database), table).Scan(&all)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

const utf8 = "utf8mb4_bin"

func TestHeraldTablesAreThoseOfPhorge(t *testing.T) {
	p := stacktest.Phorge(t, "")
	tests := []struct {
		table   string
		columns []column
		keys    string
	}{
		{"herald_webhookrequest", []column{
			{"id", "int unsigned", "NO", "auto_increment", ""},
			{"phid", "varbinary(64)", "NO", "", ""},
			{"webhookPHID", "varbinary(64)", "NO", "", ""},
			{"objectPHID", "varbinary(64)", "NO", "", ""},
			{"status", "varchar(32)", "NO", "", utf8},
			{"properties", "longtext", "NO", "", utf8},
			{"lastRequestResult", "varchar(32)", "NO", "", utf8},
			{"lastRequestEpoch", "int unsigned", "NO", "", ""},
			{"dateCreated", "int unsigned", "NO", "", ""},
			{"dateModified", "int unsigned", "NO", "", ""},
		}, "key_collect(dateCreated); key_phid!(phid); " +
			"key_ratelimit(webhookPHID,lastRequestResult,lastRequestEpoch); PRIMARY!(id)"},
		{"herald_webhook", []column{
			{"id", "int unsigned", "NO", "auto_increment", ""},
			{"phid", "varbinary(64)", "NO", "", ""},
			{"name", "varchar(128)", "NO", "", utf8},
			{"webhookURI", "longtext", "NO", "", utf8},
			{"viewPolicy", "varbinary(64)", "NO", "", ""},
			{"editPolicy", "varbinary(64)", "NO", "", ""},
			{"status", "varchar(32)", "NO", "", utf8},
			{"hmacKey", "varchar(32)", "NO", "", utf8},
			{"dateCreated", "int unsigned", "NO", "", ""},
			{"dateModified", "int unsigned", "NO", "", ""},
		}, "key_phid!(phid); key_status(status); PRIMARY!(id)"},
	}
	for _, tt := range tests {
		t.Run(tt.table, func(t *testing.T) {
			got := columns(t, p, "herald", tt.table)
			if len(got) != len(tt.columns) {
				t.Fatalf("%d columns, want %d", len(got), len(tt.columns))
			}
			for i, c := range got {
				if c != tt.columns[i] {
					t.Errorf("column %d is %v, want %v", i, c, tt.columns[i])
				}
			}
			if got := keys(t, p, "herald", tt.table); got != tt.keys {
				t.Errorf("keys %s\nwant %s", got, tt.keys)
			}
		})
	}
}

func TestCreatePhorgeTwiceKeepsRows(t *testing.T) {
	p := stacktest.Phorge(t, "")
	hook, err := p.CreateHook(t.Context(), devstack.Hook{Name: "kept", URI: "http://127.0.0.1:1/"})
	if err != nil {
		t.Fatal(err)
	}
	if err := devstack.CreatePhorge(t.Context(), p.DB, p.Namespace); err != nil {
		t.Fatal(err)
	}
	hooks, err := p.Hooks(t.Context())
	if err != nil || len(hooks) != 1 || hooks[0] != hook {
		t.Errorf("hooks after the second creation: %v, %v", len(hooks), err)
	}
}

func TestCreatePhorgeRefusesNamesThatNeedQuoting(t *testing.T) {
	db := stacktest.Open(t, stacktest.MariaDB(t), "")
	for _, ns := range []string{"", "a`b", "Upper", "a b", strings.Repeat("a", 41)} {
		if err := devstack.CreatePhorge(t.Context(), db, ns); err == nil {
			t.Errorf("namespace %q was accepted", ns)
		}
	}
}

// recording is a row's properties as a real Phorge wrote them.
type recording struct {
	Case       string `json:"case"`
	Properties string `json:"properties"`
}

func recordings(t *testing.T) map[string]string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "properties.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Rows []recording `json:"rows"`
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, r := range file.Rows {
		found[r.Case] = r.Properties
	}
	return found
}

// The shape of a row is its text with every identifier and row id replaced.
var identifiers = regexp.MustCompile(`PHID-(XACT-TASK|TASK|USER|HRUL|HWBH)-[a-z2-7]+|"[0-9]+":`)

func shape(properties string) string {
	return identifiers.ReplaceAllStringFunc(properties, func(s string) string {
		if s[0] == '"' {
			return `"#":`
		}
		return "@"
	})
}

func TestRowsHaveTheShapesPhorgeWrites(t *testing.T) {
	recorded := recordings(t)
	p := stacktest.Phorge(t, "")
	ctx := t.Context()
	task, err := p.CreateTask(ctx, devstack.NewPHID("USER"), "a task")
	if err != nil {
		t.Fatal(err)
	}
	xacts, err := p.AddTransactions(ctx, devstack.NewPHID("USER"), task, 12)
	if err != nil {
		t.Fatal(err)
	}
	hook := devstack.NewPHID("HWBH")
	tests := []struct {
		recorded string
		enqueue  func() (string, error)
	}{
		{"real-firehose", func() (string, error) {
			return p.EnqueueEditor(ctx, devstack.Edit{Hook: hook, Object: task, Transactions: xacts[:3], Triggers: []string{hook}})
		}},
		{"real-test-button", func() (string, error) { return p.EnqueueTest(ctx, hook, task, devstack.NewPHID("USER")) }},
		{"real-bin-webhook-call", func() (string, error) {
			return p.EnqueueCommandLine(ctx, devstack.Call{Hook: hook, Object: task, Secure: true})
		}},
	}
	for _, tt := range tests {
		t.Run(tt.recorded, func(t *testing.T) {
			phid, err := tt.enqueue()
			if err != nil {
				t.Fatal(err)
			}
			row, err := p.Row(ctx, phid)
			if err != nil {
				t.Fatal(err)
			}
			want := recorded[tt.recorded]
			if want == "" || shape(row.Properties) != shape(want) {
				t.Errorf("wrote  %s\nPhorge %s", shape(row.Properties), shape(want))
			}
			fresh := devstack.Row{
				ID: row.ID, PHID: phid, HookPHID: hook, ObjectPHID: task, Status: "queued",
				Properties: row.Properties, LastResult: "none", Created: row.Created, Modified: row.Created,
			}
			if row != fresh || row.Created == 0 {
				t.Errorf("row %+v, want %+v", row, fresh)
			}
		})
	}
}

func TestTestButtonTakesTheNewestTenNewestFirst(t *testing.T) {
	p := stacktest.Phorge(t, "")
	task := devstack.NewPHID("TASK")
	xacts, err := p.AddTransactions(t.Context(), devstack.NewPHID("USER"), task, 12)
	if err != nil {
		t.Fatal(err)
	}
	phid, err := p.EnqueueTest(t.Context(), devstack.NewPHID("HWBH"), task, devstack.NewPHID("USER"))
	if err != nil {
		t.Fatal(err)
	}
	row, err := p.Row(t.Context(), phid)
	if err != nil {
		t.Fatal(err)
	}
	rest := row.Properties
	for i := 11; i >= 2; i-- {
		want := strconv.Itoa(i+1) + `":"` + xacts[i] + `"`
		_, after, found := strings.Cut(rest, want)
		if !found {
			t.Fatalf("transaction %d is not next in %s", i, rest)
		}
		rest = after
	}
	if strings.Contains(row.Properties, xacts[1]) {
		t.Error("an eleventh transaction is in the row")
	}
}

func TestPropertiesEscapeLikePHP(t *testing.T) {
	p := stacktest.Phorge(t, "")
	odd := "a/b\"c\\d\b\f\n\r\t\x01\x7f<>&é\u2028😀"
	want := `a\/b\"c\\d\b\f\n\r\t\u0001` + "\x7f" + `<>&\u00e9\u2028\ud83d\ude00`
	phid, err := p.EnqueueEditor(t.Context(), devstack.Edit{Hook: "h", Object: "o", Triggers: []string{odd}})
	if err != nil {
		t.Fatal(err)
	}
	row, err := p.Row(t.Context(), phid)
	if err != nil {
		t.Fatal(err)
	}
	full := `{"retry":"forever","transactionPHIDs":[],"triggerPHIDs":["` + want + `"],"silent":false,"secure":false}`
	if row.Properties != full {
		t.Errorf("wrote %s\nwant  %s", row.Properties, full)
	}
}

func TestInsertDatesBackAndKeepsWhatItIsGiven(t *testing.T) {
	p := stacktest.Phorge(t, "")
	old, err := p.Insert(t.Context(), devstack.Row{HookPHID: "h", ObjectPHID: "o", Properties: "{}", Age: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	var now int64
	if err := p.DB.QueryRowContext(t.Context(), "SELECT UNIX_TIMESTAMP()").Scan(&now); err != nil {
		t.Fatal(err)
	}
	if age := now - old.Created; age < 3600 || age > 3660 || old.Modified != old.Created {
		t.Errorf("an hour-old row: created %d s ago, modified %d s later", age, old.Modified-old.Created)
	}
	want := devstack.Row{
		PHID: devstack.NewPHID("HWBR"), HookPHID: "h", ObjectPHID: "o", Status: "failed", Properties: "not JSON",
		LastResult: "fail", LastEpoch: 5, Created: 3, Modified: 4,
	}
	got, err := p.Insert(t.Context(), want)
	want.ID = got.ID
	if err != nil || got != want {
		t.Errorf("stored %+v, %v\nwant %+v", got, err, want)
	}
	if err := p.Collect(t.Context(), got.PHID); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Row(t.Context(), got.PHID); !errors.Is(err, sql.ErrNoRows) {
		t.Errorf("a collected row: %v, want sql.ErrNoRows", err)
	}
}

func TestPHIDs(t *testing.T) {
	task := regexp.MustCompile(`^PHID-TASK-[a-z2-7]{20}$`)
	xact := regexp.MustCompile(`^PHID-XACT-TASK-[a-z2-7]{15}$`)
	seen := map[string]bool{}
	for range 1000 {
		a, b := devstack.NewPHID("TASK"), devstack.NewTransactionPHID("TASK")
		if !task.MatchString(a) || !xact.MatchString(b) || seen[a] || seen[b] {
			t.Fatalf("%s, %s", a, b)
		}
		seen[a], seen[b] = true, true
	}
}
