package heralddb

import (
	"errors"
	"strings"
	"testing"

	"waybill/internal/devstack/stacktest"
)

// An answer that breaks off, or cannot be read, is an error that says what was
// asked for.
func TestAnAnswerThatBreaksOffSaysWhatWasAsked(t *testing.T) {
	db := stacktest.Open(t, stacktest.MariaDB(t), "")
	for name, query := range map[string]string{
		"in its middle":    "SELECT IF(n = 2, (SELECT 1 UNION SELECT 2), n) FROM (SELECT 1 AS n UNION ALL SELECT 2) t",
		"while it is read": "SELECT 3",
	} {
		rows, err := db.QueryContext(t.Context(), query) //nolint:sqlclosecheck // collect closes them
		if err != nil {
			t.Fatal(err)
		}
		_, err = collect(rows, "count sheep", func(n *int) error {
			if err := rows.Scan(n); err != nil || *n == 3 {
				return errors.Join(err, errors.New("unreadable"))
			}
			return nil
		})
		if err == nil || !strings.HasPrefix(err.Error(), "count sheep: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
