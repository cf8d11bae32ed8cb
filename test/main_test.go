// Package acceptance shows what Waybill promises, on real processes: the built
// program, MariaDB, Temporal and receivers that speak raw TCP. Each test is
// named after the property it shows; scenario has the building blocks.
// Tests run side by side (t.Parallel), but for those that put a load on the
// machine of their own: those run first, one after the other.
package acceptance

import (
	"flag"
	"os"
	"testing"

	"waybill/internal/devstack/stacktest"
	"waybill/test/scenario"
)

// program is built once for all tests.
var program scenario.Binary

// abreast is how many tests run at once. They wait far more than they work, so
// it is more than the cores that go test goes by.
const abreast = "8"

func TestMain(m *testing.M) {
	if runAsHelper() {
		return
	}
	flag.Parse()
	parallel := flag.Lookup("test.parallel")
	if parallel.Value.String() == parallel.DefValue {
		_ = parallel.Value.Set(abreast)
	}
	stacktest.Main(m)
}

// runAsHelper plays another role when this binary was started again by one of
// its own tests.
func runAsHelper() bool {
	role := os.Getenv(helperVariable)
	if role == "" {
		return false
	}
	os.Exit(helpers[role]())
	return true
}

// patience is how long tests wait for what should happen at once.
const patience = scenario.Patience
