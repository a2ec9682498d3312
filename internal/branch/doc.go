// Package branch lets agents work on a repository, each conversation on a branch and in a folder of its own.
//
// An agent that can write where git runs can make git run anything: hooks, filters, a monitor, another repository
// altogether. So git never runs outside package confine, and three places are kept apart:
//
//   - The folder of a branch is a repository of its own. The agent may do there what it likes, to its .git too; git there is as
//     confined as the agent's commands, and no setting of it counts anywhere else. What the project has it reads through git's
//     alternates, which it cannot write.
//   - The project's repository is written by git with no hooks, monitors or settings but its own, and only with data: objects,
//     which are checked as those of a stranger's push are, and one reference.
//   - Diffs and merges are worked out in an empty repository made for the purpose, so that no driver or filter takes part.
//
// What is committed in the folder is brought into the repository after each command, where people find it under the
// branch's name. The folder can therefore be lost, or broken by its agent, and is made again from there.
package branch
