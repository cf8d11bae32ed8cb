package doctor_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"waybill/internal/doctor"
)

// phorges is a schema as Phorge makes it, on a server that writes the width of numbers.
func phorges() doctor.Schema {
	number, phid := "int(10) unsigned", "varbinary(64)"
	return doctor.Schema{
		Columns: map[string]map[string]string{
			"herald_webhookrequest": {
				"id": number, "phid": phid, "webhookPHID": phid, "objectPHID": phid, "status": "varchar(32)",
				"properties": "longtext", "lastRequestResult": "varchar(32)", "lastRequestEpoch": number,
				"dateCreated": number, "dateModified": number,
			},
			"herald_webhook": {
				"id": "int unsigned", "phid": phid, "name": "varchar(128)", "webhookURI": "longtext", "viewPolicy": phid,
				"editPolicy": phid, "status": "varchar(32)", "hmacKey": "varchar(32)", "dateCreated": number, "dateModified": number,
			},
		},
		Keys: map[string]map[string][]string{"herald_webhookrequest": {
			"PRIMARY": {"id"}, "key_phid": {"phid"}, "key_ratelimit": {"webhookPHID", "lastRequestResult", "lastRequestEpoch"},
			"key_collect": {"dateCreated"},
		}},
	}
}

// judged is the level that findings come to, and all that they say.
func judged(findings ...doctor.Finding) (doctor.Level, string) {
	var b strings.Builder
	for _, f := range findings {
		b.WriteString(f.Text + " " + f.Advice + "\n")
	}
	return doctor.Worst(findings), b.String()
}

func TestFindingsSayWhatIsWrongAndHowMuch(t *testing.T) {
	changed := func(change func(doctor.Schema)) doctor.Schema {
		s := phorges()
		change(s)
		return s
	}
	requests := "herald_webhookrequest"
	owned := doctor.Locked{Hook: "PHID-HWBH-a", Holder: 7, Owner: "w1", Connection: 7}
	foreign := doctor.Locked{Hook: "PHID-HWBH-b", Holder: 9, Who: "phd@localhost", Owner: "w1", Connection: 7}
	fine := doctor.Session{Several: true, Seen: true, Beside: true}
	deliveredRow := doctor.Change{PHID: "PHID-HWBR-1", Hook: "PHID-HWBH-a", Delivered: true}
	claimedRow := doctor.Change{PHID: "PHID-HWBR-2", Hook: "PHID-HWBH-a"}
	for name, tt := range map[string]struct {
		findings []doctor.Finding
		level    doctor.Level
		says     string
	}{
		"tables as they are": {doctor.Tables(phorges()), doctor.OK, "as Phorge makes them"},
		"a table is missing": {doctor.Tables(changed(func(s doctor.Schema) { delete(s.Columns, requests) })), doctor.Problem, "no table herald_webhookrequest"},
		"a column is missing": {doctor.Tables(changed(func(s doctor.Schema) { delete(s.Columns[requests], "objectPHID") })),
			doctor.Problem, "no column objectPHID"},
		"a column is another": {doctor.Tables(changed(func(s doctor.Schema) { s.Columns[requests]["dateModified"] = "bigint(20)" })),
			doctor.Problem, "dateModified is bigint(20), not int unsigned"},
		"no key on status": {doctor.Keys(phorges()), doctor.Note, "HeraldWebhookRequest too, or bin/storage adjust drops it"},
		"a key on status": {doctor.Keys(changed(func(s doctor.Schema) { s.Keys[requests]["key_status"] = []string{"status", "id"} })),
			doctor.OK, "a key on status"},
		"a key of Phorge's is missing": {doctor.Keys(changed(func(s doctor.Schema) { delete(s.Keys[requests], "key_ratelimit") })),
			doctor.Warning, "key_ratelimit is missing"},

		"may write":   {[]doctor.Finding{doctor.Write(0, "x")}, doctor.OK, "granted"},
		"may not":     {[]doctor.Finding{doctor.Write(1142, "phabricator_herald")}, doctor.Problem, "GRANT SELECT, UPDATE ON `phabricator_herald`.herald_webhookrequest"},
		"a replica":   {[]doctor.Finding{doctor.Write(1290, "x")}, doctor.Problem, "read-only"},
		"other error": {[]doctor.Finding{doctor.Write(1205, "x")}, doctor.Problem, "error 1205"},

		"clocks agree":         {[]doctor.Finding{doctor.Clock(900*time.Millisecond, 0)}, doctor.OK, "agree"},
		"nobody can tell":      {[]doctor.Finding{doctor.Clock(-3*time.Second, 2*time.Second)}, doctor.OK, "agree"},
		"a little behind":      {[]doctor.Finding{doctor.Clock(-3*time.Second, 0)}, doctor.Note, "3s behind"},
		"a minute ahead":       {[]doctor.Finding{doctor.Clock(time.Minute, 0)}, doctor.Warning, "1m0s ahead of"},
		"nothing waits":        {[]doctor.Finding{doctor.Queue(0, 0)}, doctor.OK, "No row"},
		"one waits":            {[]doctor.Finding{doctor.Queue(1, time.Minute)}, doctor.OK, "1 row waiting, the oldest for 1m0s."},
		"they wait for long":   {[]doctor.Finding{doctor.Queue(3, time.Hour)}, doctor.Warning, "3 rows waiting, the oldest for 1h0m0s."},
		"little load":          {[]doctor.Finding{doctor.Load(30, false)}, doctor.OK, "2.0 times a second"},
		"much load":            {[]doctor.Finding{doctor.Load(10_000, false)}, doctor.Warning, "666.7 times a second"},
		"no load":              {[]doctor.Finding{doctor.Load(10_000, true)}, doctor.OK, "external"},
		"no odd row":           {doctor.Rows(nil, 3), doctor.OK, "3 rows"},
		"odd rows":             {doctor.Rows(doctor.OddRows{"dated ahead": {"b", "a"}}, 3), doctor.Warning, "2 rows dated ahead: a, b."},
		"readable objects":     {[]doctor.Finding{doctor.Objects(nil)}, doctor.OK, "can be read"},
		"unreadable objects":   {[]doctor.Finding{doctor.Objects([]string{"`m`.`task`"})}, doctor.Note, "`m`.`task`"},
		"silent":               {[]doctor.Finding{doctor.Silence(2, false)}, doctor.Problem, "pause --all"},
		"silent and held":      {[]doctor.Finding{doctor.Silence(2, true)}, doctor.Warning, "resume --all"},
		"not silent":           {[]doctor.Finding{doctor.Silence(0, true)}, doctor.OK, "No row"},
		"callable addresses":   {doctor.Addresses(nil, nil, nil, 2), doctor.OK, "2 enabled hooks"},
		"refused addresses":    {doctor.Addresses([]string{"a"}, nil, nil, 2), doctor.Warning, "WAYBILL_HERALD_ALLOW"},
		"unresolved addresses": {doctor.Addresses(nil, []string{"a"}, nil, 2), doctor.Warning, "does not resolve"},
		"malformed addresses":  {doctor.Addresses(nil, nil, []string{"a", "b"}, 2), doctor.Warning, "2 hooks whose address"},

		"one lock at a time":     {doctor.Locks(doctor.Session{Seen: true, Beside: true}, nil), doctor.Problem, "5.7.5"},
		"an unseen lock":         {doctor.Locks(doctor.Session{Several: true, Beside: true}, nil), doctor.Problem, "proxy"},
		"locks elsewhere":        {doctor.Locks(doctor.Session{Several: true, Seen: true}, nil), doctor.Note, "another server"},
		"an owned hook":          {doctor.Locks(fine, []doctor.Locked{owned}), doctor.OK, "1 hook owned by w1"},
		"somebody else's lock":   {doctor.Locks(fine, []doctor.Locked{owned, foreign}), doctor.Note, "PHID-HWBH-b (connection 9 of phd@localhost)"},
		"a free hook":            {doctor.Locks(fine, []doctor.Locked{{Hook: "c"}}), doctor.OK, "1 hook free"},
		"nobody works":           {doctor.Consumers(doctor.Watched{For: time.Minute}), doctor.OK, "Nobody else has changed a waiting row in 1m0s"},
		"Phorge delivers":        {doctor.Consumers(doctor.Watched{Foreign: []doctor.Change{deliveredRow}, Locked: true}), doctor.OK, "its lock is seen"},
		"no lock is seen":        {doctor.Consumers(doctor.Watched{Foreign: []doctor.Change{deliveredRow}}), doctor.Note, "no lock of it was seen"},
		"another consumer":       {doctor.Consumers(doctor.Watched{Foreign: []doctor.Change{claimedRow}}), doctor.Warning, "PHID-HWBR-2"},
		"in spite of the lock":   {doctor.Consumers(doctor.Watched{Foreign: []doctor.Change{deliveredRow}, Ours: map[string]bool{"PHID-HWBH-a": true}}), doctor.Problem, "gorge-webhook asks for no lock"},
		"claimed in spite of it": {doctor.Consumers(doctor.Watched{Foreign: []doctor.Change{claimedRow}, Ours: map[string]bool{"PHID-HWBH-a": true}}), doctor.Problem, "WAYBILL_HERALD_LOCK_DSN"},
	} {
		if level, said := judged(tt.findings...); level != tt.level || !strings.Contains(said, tt.says) {
			t.Errorf("%s: %s, want %s saying %q: %s", name, level, tt.level, tt.says, said)
		}
	}
}

// What changes a row that waits is a delivery, a claim, or one of Phorge's own
// failures, which take no call.
func TestChangesOfRowsAreToldApart(t *testing.T) {
	row := func(status, result string, modified int64) doctor.Seen {
		return doctor.Seen{PHID: "r", Hook: "h", Status: status, Result: result, Modified: modified}
	}
	again := row("queued", "fail", 101)
	again.Called = 101
	fresh, failed := row("queued", "none", 100), row("queued", "fail", 100)
	for name, tt := range map[string]struct {
		before, after doctor.Seen
		want          []doctor.Change
	}{
		"nothing":            {fresh, fresh, nil},
		"sent":               {fresh, row("sent", "okay", 101), []doctor.Change{{"r", "h", true}}},
		"failed for good":    {fresh, row("failed", "fail", 101), []doctor.Change{{"r", "h", true}}},
		"failed, tried soon": {fresh, row("queued", "fail", 101), []doctor.Change{{"r", "h", true}}},
		"claimed":            {fresh, row("queued", "none", 101), []doctor.Change{{"r", "h", false}}},
		"a retry is claimed": {failed, row("queued", "fail", 101), []doctor.Change{{"r", "h", false}}},
		"a retry fails":      {failed, again, []doctor.Change{{"r", "h", true}}},
		"a retry is sent":    {failed, row("sent", "okay", 101), []doctor.Change{{"r", "h", true}}},
		"disabled, silent":   {fresh, row("failed", "none", 101), nil},
		"was over":           {row("sent", "okay", 1), row("failed", "fail", 2), nil},
	} {
		got := doctor.Changes(map[string]doctor.Seen{"r": tt.before}, map[string]doctor.Seen{"r": tt.after})
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
	if got := doctor.Changes(map[string]doctor.Seen{"r": fresh}, nil); got != nil {
		t.Errorf("collected: %+v", got)
	}
}

// Of many hooks a few are named and the rest counted.
func TestLongListsAreCutShort(t *testing.T) {
	many := map[string]bool{}
	for _, name := range strings.Split("h g f e d c b a", " ") {
		many[name] = true
	}
	_, said := judged(doctor.Addresses(slices.Collect(maps.Keys(many)), nil, nil, 8)...)
	if !strings.Contains(said, ": a, b, c, d, e and 3 more.") {
		t.Errorf("said %q", said)
	}
}

func TestServersAreNamedAsPeopleDo(t *testing.T) {
	for said, want := range map[string]string{
		"10.11.19-MariaDB-0+deb12u1": "MariaDB 10.11.19", "8.0.44": "MySQL 8.0.44", "5.7.5-log": "MySQL 5.7.5",
	} {
		if got := doctor.Version(said); got != want {
			t.Errorf("%q is %q, want %q", said, got, want)
		}
	}
}
