package herald

import "bytes"

// Keys of the properties column, as Phorge's HeraldWebhookRequest names them.
const (
	keyRetry        = "retry"
	keyTransactions = "transactionPHIDs"
	keyTriggers     = "triggerPHIDs"
	keyTest         = "test"
	keySilent       = "silent"
	keySecure       = "secure"
	keyErrorType    = "errorType"
	keyErrorCode    = "errorCode"
)

// retryForever is the one retry mode that keeps a failed row queued. Phorge
// compares strictly, so no other spelling or type counts.
const retryForever = "forever"

// Properties is the decoded properties column. The zero value stands for an
// empty array, which is how PHP stores no properties.
type Properties struct {
	raw          []byte
	root         value
	outer        []span
	bounds       [2]int
	transactions []string
	triggers     []value
}

// ParseProperties reads the column as PHP would. The error is always a *Fault
// and means that PHP's worker would have raised an exception: the row is to be
// left untouched and reported.
func ParseProperties(raw []byte) (Properties, error) {
	d := &decoder{raw: bytes.Clone(raw)}
	root, err := d.decode()
	if err != nil {
		return Properties{}, err
	}
	if root.kind != kindArray {
		return Properties{}, badProperties("neither a JSON object nor a list")
	}
	p := Properties{raw: d.raw, root: root, outer: d.outer, bounds: d.bounds}
	if p.transactions, err = transactionPHIDs(root); err != nil {
		return Properties{}, err
	}
	if p.triggers, err = triggers(root); err != nil {
		return Properties{}, err
	}
	return p, nil
}

// transactionPHIDs takes what PHP would hand to its query. Scalars in the list
// are cast to strings there and match no PHID, so they are dropped here; an
// array in the list makes the query raise.
func transactionPHIDs(root value) ([]string, error) {
	v, ok := root.get(keyTransactions)
	switch {
	case !ok:
		return nil, nil
	case v.kind == kindNull || v.kind == kindString:
		return nil, badProperties("transactionPHIDs is null or a string")
	case v.falsy():
		return nil, nil
	case v.kind != kindArray:
		return nil, badProperties("transactionPHIDs is no list")
	}
	var phids []string
	seen := map[string]bool{}
	for _, item := range v.items {
		if item.kind == kindArray {
			return nil, badProperties("transactionPHIDs holds a list")
		}
		if item.kind == kindString && !seen[item.text] {
			seen[item.text] = true
			phids = append(phids, item.text)
		}
	}
	return phids, nil
}

// triggers passes every value through, whatever its type; only a thing that
// foreach cannot walk is an exception in PHP.
func triggers(root value) ([]value, error) {
	v, ok := root.get(keyTriggers)
	if !ok {
		return nil, nil
	}
	if v.kind != kindArray {
		return nil, badProperties("triggerPHIDs is no list")
	}
	return v.items, nil
}

// RetryForever reports whether a failed attempt leaves the row queued.
func (p Properties) RetryForever() bool {
	v, _ := p.root.get(keyRetry)
	return v.kind == kindString && v.text == retryForever
}

// TransactionPHIDs lists the strings of transactionPHIDs in order of
// appearance, without duplicates. Which of them exist, and in which order they
// are sent, only Phorge's transaction table knows.
func (p Properties) TransactionPHIDs() []string {
	return append([]string(nil), p.transactions...)
}

// flag is a flag as PHP's idx() gives it: null stays null, absent is false.
func (p Properties) flag(key string) value {
	if v, ok := p.root.get(key); ok {
		return v
	}
	return truth(false)
}

// WithError is the column's text with errorType and errorCode set: overwritten
// where they stand, appended behind the last key where they are absent. Every
// other byte is kept (differs: PHP encodes the whole text anew). The result
// shares no memory with p.
func (p Properties) WithError(t ErrorType, c Code) []byte {
	if p.raw == nil {
		p.raw, p.bounds = []byte("[]"), [2]int{0, 1}
	}
	news := []member{{keyErrorType, text(string(t))}, {keyErrorCode, c.value()}}
	if p.raw[p.bounds[0]] == '[' {
		return p.listWithError(news)
	}
	var out []byte
	copied, insert := 0, p.bounds[0]+1
	present := map[string]bool{}
	for _, s := range p.outer {
		insert = s.end
		present[s.key] = true
		// A duplicate key is overwritten each time, so that first-wins and
		// last-wins readers both see this outcome.
		for _, n := range news {
			if n.key == s.key {
				out = append(out, p.raw[copied:s.start]...)
				out = appendScalar(out, n.value)
				copied = s.end
			}
		}
	}
	out = append(out, p.raw[copied:insert]...)
	comma := len(p.outer) > 0
	for _, n := range news {
		if !present[n.key] {
			out = appendMember(out, n, comma)
			comma = true
		}
	}
	return append(out, p.raw[insert:]...)
}

// listWithError turns a list into the object that PHP would store once a string
// key joins the positions.
func (p Properties) listWithError(news []member) []byte {
	out := append([]byte(nil), p.raw[:p.bounds[0]]...)
	out = append(out, '{')
	copied := p.bounds[0] + 1
	for _, s := range p.outer {
		out = append(out, p.raw[copied:s.start]...)
		out = append(appendString(out, s.key), ':')
		out = append(out, p.raw[s.start:s.end]...)
		copied = s.end
	}
	for i, n := range news {
		out = appendMember(out, n, i > 0 || len(p.outer) > 0)
	}
	out = append(out, p.raw[copied:p.bounds[1]]...)
	return append(append(out, '}'), p.raw[p.bounds[1]+1:]...)
}

func appendMember(dst []byte, m member, comma bool) []byte {
	if comma {
		dst = append(dst, ',')
	}
	return appendScalar(append(appendString(dst, m.key), ':'), m.value)
}
