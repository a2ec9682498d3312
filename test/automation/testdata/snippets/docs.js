// getDocs returns a text, with and without await.
const all = getDocs(), one = getDocs('Gmail.api'), space = getDocs('Memory');
let missing = '';
try { getDocs('Nowhere') } catch (e) { missing = e.code }
Console.log(one);
[typeof all, all === await getDocs(), all.includes('Items.withItem'), all.includes('Items.list'), space.includes('Memory.createNote'),
  space.includes('Memory.getNote'), one.includes('Not a mutation, call it anywhere: users.messages.list, users.messages.get.'),
  one.includes('call it inside Items.withItem and await it: users.messages.modify, users.messages.send.'),
  getDocs('Memory.getNote').includes('output: '), missing].join(' ')
