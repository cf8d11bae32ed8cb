package herald

// Table is one table of a Phorge installation.
type Table struct {
	// Database is what follows "<namespace>_" in the database's name.
	Database string
	Name     string
}

// ObjectTables says where objects of one type live. A nil table is one that
// Phorge does not have.
type ObjectTables struct {
	Object *Table
	// Transactions is nil for types without a transaction table. Where Object
	// is set PHP raises an exception for such an object, whatever the row lists:
	// callers treat the row as unprocessable.
	Transactions *Table
}

// Tables looks up an object type as ObjectType returns it. Types that Phorge
// does not know, or that an extension brought along, are not found.
func Tables(objectType string) (ObjectTables, bool) {
	known, ok := objectTables[objectType]
	if !ok {
		return ObjectTables{}, false
	}
	var t ObjectTables
	if known[0] != (Table{}) {
		t.Object = &known[0]
	}
	if known[1] != (Table{}) {
		t.Transactions = &known[1]
	}
	return t, true
}
