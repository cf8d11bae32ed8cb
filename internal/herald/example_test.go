package herald_test

import (
	"fmt"

	"waybill/internal/herald"
)

func ExampleProperties_WithError() {
	p, err := herald.ParseProperties([]byte(`{"retry":"forever","f":1.0,"errorType":"timeout"}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	v := herald.Decide(herald.Answer{HTTPStatus: 503}, p.RetryForever())
	fmt.Println(v.Status, v.Result)
	fmt.Println(string(p.WithError(v.ErrorType, v.Code)))
	// Output:
	// queued fail
	// {"retry":"forever","f":1.0,"errorType":"http","errorCode":503}
}

func ExampleParseProperties() {
	_, err := herald.ParseProperties([]byte(`{"transactionPHIDs":"PHID-XACT-TASK-abcd"}`))
	fmt.Println(err)
	// Output: properties: transactionPHIDs is null or a string
}

func ExampleParseURI() {
	t, err := herald.ParseURI("https://us%65r:p@Hooks.Example:8443/a/../b%2F?x=1#gone")
	fmt.Println(t, err)
	fmt.Println(t.Host, t.Hostname, t.Port, t.RequestTarget)
	fmt.Println(t.User.BasicAuth())
	_, err = herald.ParseURI("http://127.1/")
	fmt.Println(err)
	// Output:
	// https://Hooks.Example:8443/... <nil>
	// Hooks.Example:8443 Hooks.Example 8443 /b%2F?x=1
	// Basic dXNlcjpw
	// uri: has an IPv4 address that is no plain dotted quad
}

func ExampleDocument() {
	p, _ := herald.ParseProperties([]byte(`{"triggerPHIDs":["PHID-HRUL-a"],"secure":true}`))
	row := herald.Request{ObjectPHID: "PHID-TASK-abcd", Created: 12345}
	fmt.Print(string(herald.Document(row, p, []string{"PHID-XACT-TASK-b"})))
	// Output:
	// {
	//   "object": {
	//     "type": "TASK",
	//     "phid": "PHID-TASK-abcd"
	//   },
	//   "triggers": [
	//     {
	//       "phid": "PHID-HRUL-a"
	//     }
	//   ],
	//   "action": {
	//     "test": false,
	//     "silent": false,
	//     "secure": true,
	//     "epoch": 12345
	//   },
	//   "transactions": [
	//     {
	//       "phid": "PHID-XACT-TASK-b"
	//     }
	//   ]
	// }
}

func ExampleTables() {
	t, known := herald.Tables(herald.ObjectType("PHID-TASK-abcd"))
	fmt.Println(known, *t.Object, *t.Transactions)
	// An application is no row, but has transactions all the same.
	t, known = herald.Tables("APPS")
	fmt.Println(known, t.Object == nil, *t.Transactions)
	// Output:
	// true {maniphest maniphest_task} {maniphest maniphest_transaction}
	// true true {application application_applicationtransaction}
}
