package devstack

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"strings"
)

// Phorge is the part of a Phorge installation's databases that Waybill meets,
// with writers for the rows Phorge would write.
//
// Names of tables are always qualified, so DB may have any or no database
// selected; its user needs the rights to create them.
type Phorge struct {
	DB        *sql.DB
	Namespace string
}

// PhorgeDatabases are the suffixes of the databases CreatePhorge makes.
func PhorgeDatabases() []string { return []string{"herald", "maniphest", "user"} }

// Database is the full name of one of them: {namespace}_{suffix}.
func (p *Phorge) Database(suffix string) string { return p.Namespace + "_" + suffix }

// table is a qualified, quoted table name.
func (p *Phorge) table(suffix, name string) string {
	return "`" + p.Database(suffix) + "`.`" + name + "`"
}

// namespacePattern is what may stand in a quoted name without thought. Phorge
// itself wants lower-case letters, digits and underscores.
var namespacePattern = regexp.MustCompile(`^[a-z0-9_]{1,40}$`)

// CreatePhorge creates the databases and tables of a Phorge as far as Waybill
// reads or writes them. Existing ones stay as they are.
//
// The two Herald tables are complete, column for column and key for key.
// Of the others Waybill asks only whether a PHID exists and in which order ids
// follow; they have the columns a row cannot do without.
func CreatePhorge(ctx context.Context, db *sql.DB, namespace string) error {
	if !namespacePattern.MatchString(namespace) {
		return fmt.Errorf("storage namespace %q: want 1 to 40 of a-z, 0-9 and _", namespace)
	}
	p := &Phorge{DB: db, Namespace: namespace}
	for _, suffix := range PhorgeDatabases() {
		q := "CREATE DATABASE IF NOT EXISTS `" + p.Database(suffix) + "` CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
		if _, err := db.ExecContext(ctx, q); err != nil {
			return fmt.Errorf("database %s: %w", p.Database(suffix), err)
		}
	}
	for _, t := range phorgeTables() {
		q := "CREATE TABLE IF NOT EXISTS " + p.table(t.database, t.name) + " (\n" +
			strings.TrimSpace(t.columns) + "\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin"
		if _, err := db.ExecContext(ctx, q); err != nil {
			return fmt.Errorf("table %s: %w", p.table(t.database, t.name), err)
		}
	}
	return nil
}

// phorgeTable is a table's definition; database is the suffix.
type phorgeTable struct{ database, name, columns string }

func phorgeTables() []phorgeTable {
	return []phorgeTable{
		{"herald", "herald_webhook", webhookColumns},
		{"herald", "herald_webhookrequest", requestColumns},
		{"maniphest", "maniphest_task", taskColumns},
		{"maniphest", "maniphest_transaction", transactionColumns},
		{"user", "user", userColumns},
		{"user", "user_transaction", transactionColumns},
	}
}

const webhookColumns = `
  id int unsigned NOT NULL AUTO_INCREMENT,
  phid varbinary(64) NOT NULL,
  name varchar(128) NOT NULL,
  webhookURI longtext NOT NULL,
  viewPolicy varbinary(64) NOT NULL,
  editPolicy varbinary(64) NOT NULL,
  status varchar(32) NOT NULL,
  hmacKey varchar(32) NOT NULL,
  dateCreated int unsigned NOT NULL,
  dateModified int unsigned NOT NULL,
  PRIMARY KEY (id),
  UNIQUE KEY key_phid (phid),
  KEY key_status (status)`

// requestColumns has no key on status: a stock Phorge has none either, and
// whoever polls the table must be cheap without.
const requestColumns = `
  id int unsigned NOT NULL AUTO_INCREMENT,
  phid varbinary(64) NOT NULL,
  webhookPHID varbinary(64) NOT NULL,
  objectPHID varbinary(64) NOT NULL,
  status varchar(32) NOT NULL,
  properties longtext NOT NULL,
  lastRequestResult varchar(32) NOT NULL,
  lastRequestEpoch int unsigned NOT NULL,
  dateCreated int unsigned NOT NULL,
  dateModified int unsigned NOT NULL,
  PRIMARY KEY (id),
  UNIQUE KEY key_phid (phid),
  KEY key_ratelimit (webhookPHID, lastRequestResult, lastRequestEpoch),
  KEY key_collect (dateCreated)`

const taskColumns = `
  id int unsigned NOT NULL AUTO_INCREMENT,
  phid varbinary(64) NOT NULL,
  authorPHID varbinary(64) NOT NULL,
  status varchar(64) NOT NULL,
  priority int unsigned NOT NULL,
  title longtext NOT NULL,
  viewPolicy varbinary(64) NOT NULL,
  editPolicy varbinary(64) NOT NULL,
  dateCreated int unsigned NOT NULL,
  dateModified int unsigned NOT NULL,
  PRIMARY KEY (id),
  UNIQUE KEY key_phid (phid)`

const userColumns = `
  id int unsigned NOT NULL AUTO_INCREMENT,
  phid varbinary(64) NOT NULL,
  userName varchar(64) NOT NULL,
  realName varchar(128) NOT NULL,
  dateCreated int unsigned NOT NULL,
  dateModified int unsigned NOT NULL,
  PRIMARY KEY (id),
  UNIQUE KEY key_phid (phid),
  UNIQUE KEY userName (userName)`

// transactionColumns is the same for every application's transaction table.
const transactionColumns = `
  id int unsigned NOT NULL AUTO_INCREMENT,
  phid varbinary(64) NOT NULL,
  authorPHID varbinary(64) NOT NULL,
  objectPHID varbinary(64) NOT NULL,
  viewPolicy varbinary(64) NOT NULL,
  editPolicy varbinary(64) NOT NULL,
  commentPHID varbinary(64) DEFAULT NULL,
  commentVersion int unsigned NOT NULL,
  transactionType varchar(32) NOT NULL,
  oldValue longtext NOT NULL,
  newValue longtext NOT NULL,
  contentSource longtext NOT NULL,
  metadata longtext NOT NULL,
  dateCreated int unsigned NOT NULL,
  dateModified int unsigned NOT NULL,
  PRIMARY KEY (id),
  UNIQUE KEY key_phid (phid),
  KEY key_object (objectPHID)`
