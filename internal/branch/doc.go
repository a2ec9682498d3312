// Package branch lets agents work on git repositories. Each conversation has a branch and a folder of its own.
//
// [Service] creates branches, opens a [WorkingTree] for a call, and merges or discards branches at the request of a
// person. A call works in three steps: OpenWork prepares the branch and its folder and locks the branch, the command
// runs in the folder, and WorkingTree.Save commits the changes and imports the commit into the project's repository.
//
// An agent that can write to a place where git runs can make git run any program, through hooks, filters, monitors or
// another repository. So git runs only inside package confine, and three places are kept apart:
//
//   - The folder of a branch is a repository of its own. The agent may change everything in it, including .git. Git is
//     confined there like the agent's commands, and its settings apply nowhere else. Objects of the project are read
//     through git's alternates, which the agent cannot write.
//   - In the project's repository, git runs without hooks and monitors, and with the repository's own settings. It
//     imports nothing but data: objects, which are checked like those of an untrusted push, and one reference.
//   - Diffs and merges are computed in an empty temporary repository, so that no driver or filter takes part.
//
// After each command, the commits of the folder are imported into the repository, where people find them under the
// name of the branch. Therefore a folder that is lost, or broken by its agent, can be created again.
package branch
