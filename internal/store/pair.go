package store

// isPair tells whether the ids in a row that tells its call are those of a call and its answer, as reeve.AnswerTo gives it. Others have no common place in the order of messages: whoever reads
// page by page would never come to the end, or miss what is sound.
const isPair = `(substr(call_id, 1, 29) = substr(result_id, 1, 29) AND call_id < result_id
	AND (substr(call_id, 30) || substr(result_id, 30)) IN ('01', '23', '45', '67', '89', 'ab', 'cd', 'ef', 'gh', 'jk', 'mn', 'pq', 'rs', 'tv', 'wx', 'yz'))`

// noPair is the kind of what pages have in place of the answer where ids are no pair.
const noPair = `unpaired`

// answerOrNone is answerColumns for pages: what is no pair has the place that its call would have.
var answerOrNone = answeredAs(`CASE WHEN `+isPair+` THEN result_id ELSE call_id END`, `CASE WHEN `+isPair+` THEN 'tool_result' ELSE '`+noPair+`' END`)

// unpaired is what is wrong with the row of an operation whose call and answer have no place among messages.
type unpaired struct{ operation string }

func (unpaired) Error() string { return "call_id and result_id are not those of a call and its answer" }
