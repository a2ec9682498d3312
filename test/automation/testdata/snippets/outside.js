await Memory.createNote({ title: 'test', content: 'test' });
