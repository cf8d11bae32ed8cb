package doctor

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// The checks of the server and its tables.
const (
	CheckPhorge = "phorge"
	CheckOwn    = "waybill"
	CheckTables = "tables"
	CheckIndex  = "index"
	CheckGrants = "grants"
	CheckClock  = "clock"
)

// Schema is what a server says about tables: columns and their types, keys and
// their columns.
type Schema struct {
	Columns map[string]map[string]string   // table, column -> type
	Keys    map[string]map[string][]string // table, key -> columns
}

// Phorge's tables as Waybill reads and writes them.
const (
	requests = "herald_webhookrequest"
	hooks    = "herald_webhook"
)

// wanted is the type of each column that Waybill uses.
func wanted() map[string]map[string]string {
	return map[string]map[string]string{
		requests: {
			"id": "int unsigned", "phid": "varbinary(64)", "webhookPHID": "varbinary(64)", "objectPHID": "varbinary(64)",
			"status": "varchar(32)", "properties": "longtext", "lastRequestResult": "varchar(32)",
			"lastRequestEpoch": "int unsigned", "dateCreated": "int unsigned", "dateModified": "int unsigned",
		},
		hooks: {
			"id": "int unsigned", "phid": "varbinary(64)", "name": "varchar(128)", "webhookURI": "longtext",
			"status": "varchar(32)", "hmacKey": "varchar(32)",
		},
	}
}

// displayWidth is what servers before MySQL 8 write behind an integer type.
var displayWidth = regexp.MustCompile(`^int\(\d+\)`)

// Tables compares both tables with those of Phorge 07c1a513.
func Tables(s Schema) []Finding {
	var all []Finding
	for table, columns := range wanted() {
		if len(s.Columns[table]) == 0 {
			all = append(all, found(CheckTables, Problem, "There is no table "+table+" to be seen.",
				"Name the database {namespace}_herald in WAYBILL_HERALD_DSN, run bin/storage upgrade of Phorge, or grant SELECT."))
			continue
		}
		for column, kind := range columns {
			is, there := s.Columns[table][column]
			if is = displayWidth.ReplaceAllString(is, "int"); is == kind {
				continue
			}
			text, advice := fmt.Sprintf("%s.%s is %s, not %s.", table, column, is, kind),
				"Compare it with bin/storage adjust of Phorge."
			if !there {
				text = fmt.Sprintf("%s has no column %s.", table, column)
			}
			all = append(all, found(CheckTables, Problem, text, advice))
		}
	}
	if len(all) == 0 {
		return []Finding{found(CheckTables, OK, "Both tables are as Phorge makes them.", "")}
	}
	return all
}

// Keys looks at what the statements lean on. A key on the status is not
// Phorge's own: it helps people who look for rare rows, not deliveries.
func Keys(s Schema) []Finding {
	var all []Finding
	for key, why := range map[string]string{
		"key_ratelimit": "the breaker, due retries and heads of queues read by it",
		"key_phid":      "rows are looked up by it",
	} {
		if len(s.Keys[requests][key]) == 0 {
			all = append(all, found(CheckIndex, Warning, "The key "+key+" is missing: "+why+".", "Run bin/storage adjust of Phorge."))
		}
	}
	for _, columns := range s.Keys[requests] {
		if columns[0] == "status" {
			return append(all, found(CheckIndex, OK, "There is a key on status.", ""))
		}
	}
	return append(all, found(CheckIndex, Note,
		"There is no key on status, as in an unmodified Phorge. Deliveries need none; counts and `waybill hooks list` read the whole table.",
		"If that is too slow: ALTER TABLE "+requests+" ADD KEY key_status (status, id), and declare it in Phorge's "+
			"HeraldWebhookRequest too, or bin/storage adjust drops it again."))
}

// Write judges an attempt to update no row: the server's error number, 0 for none.
func Write(errorNumber uint16, database string) Finding {
	switch errorNumber {
	case 0:
		return found(CheckGrants, OK, "SELECT on both tables and UPDATE on "+requests+" are granted.", "")
	case 1290, 1836, 1792: // ER_OPTION_PREVENTS_STATEMENT, ER_READ_ONLY_MODE, ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION
		return found(CheckGrants, Problem, "The server takes no writes: it is read-only, as replicas are.",
			"Name the primary server in WAYBILL_HERALD_DSN.")
	case 1044, 1142, 1143: // ER_DBACCESS_DENIED_ERROR, ER_TABLEACCESS_DENIED_ERROR, ER_COLUMNACCESS_DENIED_ERROR
		return found(CheckGrants, Problem, "UPDATE on "+requests+" is not granted: no row could be claimed.",
			"GRANT SELECT, UPDATE ON `"+database+"`."+requests+" TO the user of WAYBILL_HERALD_DSN.")
	}
	return found(CheckGrants, Problem, fmt.Sprintf("UPDATE on %s is refused with error %d.", requests, errorNumber), "")
}

// Objects speaks of tables of objects and transactions that may not be read.
func Objects(unreadable []string) Finding {
	if len(unreadable) == 0 {
		return found(CheckGrants, OK, "The tables of the objects in the queue can be read.", "")
	}
	return found(CheckGrants, Note, "Not readable: "+some(unreadable)+
		". Whether an object exists is not checked for these, and transactions go in the reversed order of the row, as editors write them.",
		"Grant SELECT on them, if objects are deleted while their calls wait.")
}

// Clocks that differ by less are said to be the same; by more than grave,
// people and logs are misled.
const (
	slight = 2 * time.Second
	grave  = 30 * time.Second
)

// Clock judges by how much the database is ahead of this machine, which is
// negative where it is behind, within an uncertainty.
func Clock(ahead, within time.Duration) Finding {
	word := "ahead of"
	if ahead < 0 {
		word = "behind"
	}
	off := ahead.Abs()
	text := fmt.Sprintf("The database's clock is %s %s this machine's.", off.Round(100*time.Millisecond), word)
	switch {
	case off > grave+within:
		return found(CheckClock, Warning, text, "Set both by NTP. Deliveries go by the database's clock alone; moments of the log and of Temporal do not.")
	case off > slight+within:
		return found(CheckClock, Note, text, "Set both by NTP.")
	}
	return found(CheckClock, OK, "The database's clock and this machine's agree.", "")
}

// Version is a server's name for itself, as people say it.
func Version(said string) string {
	number, _, _ := strings.Cut(said, "-")
	if strings.Contains(said, "MariaDB") {
		return "MariaDB " + number
	}
	return "MySQL " + number
}
