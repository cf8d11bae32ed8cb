package herald

// HookSilent is the code with which Phorge itself fails a request of a site
// whose phabricator.silent is on. Waybill never writes it.
const HookSilent = "silent"

// Ending is how a row says that its last attempt ended, in the words that
// Phorge shows to people.
type Ending struct {
	Status    Status
	Result    Result
	ErrorType string
	ErrorCode string
}

// Ending reads the row's words. Properties that PHP could not read say nothing.
func (r Request) Ending() Ending {
	e := Ending{Status: r.Status, Result: r.LastResult}
	root, err := (&decoder{raw: r.Properties}).decode()
	if err != nil {
		return e
	}
	e.ErrorType, e.ErrorCode = word(root, keyErrorType), word(root, keyErrorCode)
	return e
}

// Ending is how a row with this verdict reads.
func (v Verdict) Ending() Ending {
	return Ending{Status: v.Status, Result: v.Result, ErrorType: string(v.ErrorType), ErrorCode: v.Code.String()}
}

// Silenced reports whether Phorge failed the request because the site is
// silent: finished without any attempt, in its own words for that.
func (r Request) Silenced() bool {
	return r.LastEpoch == EpochNone && r.Ending() == Ending{
		Status: StatusFailed, Result: ResultNone, ErrorType: string(ErrorHook), ErrorCode: HookSilent,
	}
}

// String is the ending in one line: status, result, error.
func (e Ending) String() string {
	s := string(e.Status) + "/" + string(e.Result)
	if e.ErrorType != "" || e.ErrorCode != "" {
		s += " " + e.ErrorType + " " + e.ErrorCode
	}
	return s
}

// word is a scalar of the properties as text, empty where there is none.
func word(root value, key string) string {
	v, ok := root.get(key)
	switch {
	case !ok || v.kind == kindArray:
		return ""
	case v.kind == kindString:
		return v.text
	}
	return string(appendScalar(nil, v))
}
