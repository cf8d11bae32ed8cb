package acceptance

// helperVariable makes this test binary play one of its helpers instead of
// running tests.
const helperVariable = "WAYBILL_ACCEPTANCE_HELPER"

// helpers are the roles, each with its exit code as result.
var helpers = map[string]func() int{}
